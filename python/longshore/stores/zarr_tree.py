"""The groups and arrays of a Zarr store: found, read and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .._words import short
from ..errors import StoreError
from .array import ArrayFacts, GroupFacts, LinkFacts, Tree
from .keys import Keys, UrlKeys, parts_of
from .zarr_json import MAX_JSON_BYTES, parse_json
from .zarr_meta import ArrayMeta, array_v2, array_v3, group_v2, group_v3, key_below

_MAX_NODES = 100_000
_MAX_DEPTH = 64


@dataclass
class GroupNode:
    """A group."""

    zarr_format: int
    attributes: dict[str, Any]
    children: dict[str, GroupNode | ArrayMeta | LinkFacts] = field(default_factory=dict)


Node = GroupNode | ArrayMeta


class TreeReader:
    """Reads the metadata documents of a store."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.documents: dict[str, bytes] = {}
        """The keys of those that were read, each with a digest of what it held."""
        self._nodes = 0

    def read(self, path: str = "") -> Node:
        """The group or array at a path, with all that is below it. Raises StoreError where there is none."""
        parts = parts_of(path)
        if parts and isinstance(self.keys, UrlKeys):  # which may not tell what is below a group
            node: Node | LinkFacts | None = self._consolidated_only()
            for part in parts if node is not None else ():
                node = node.children.get(part) if isinstance(node, GroupNode) else None
            if isinstance(node, (GroupNode, ArrayMeta)):
                return node
        found = self._node(path, 0, None)
        if found is None:
            raise StoreError(
                f"{self.keys.where(path)} is no Zarr group or array: it has neither zarr.json nor .zgroup nor .zarray"
            )
        return found

    def _consolidated_only(self) -> GroupNode | None:
        """The whole store, where one document tells of all of it."""
        document = self._get("zarr.json")
        if document is not None:
            return self._group_v3("", document, 0) if document.get("consolidated_metadata") else None
        consolidated = self._get(".zmetadata")
        return None if consolidated is None else self._from_zmetadata("", consolidated)

    def _node(self, path: str, depth: int, zarr_format: int | None) -> Node | None:
        """What is at a path, of one format if it is below a group."""
        self._count(path, depth)
        if zarr_format != 2:
            document = self._get(key_below(path, "zarr.json"))
            if document is not None:
                if document.get("node_type") == "array":
                    return self._checked(path, lambda: array_v3(document))
                return self._group_v3(path, document, depth)
            if zarr_format == 3:
                return None
        zarray = self._get(key_below(path, ".zarray"))
        if zarray is not None:
            zattrs = self._get(key_below(path, ".zattrs"))
            return self._checked(path, lambda: array_v2(zarray, zattrs))
        zgroup = self._get(key_below(path, ".zgroup"))
        if zgroup is None:
            return None
        consolidated = self._get(key_below(path, ".zmetadata"))
        if consolidated is not None:
            return self._from_zmetadata(path, consolidated)
        zattrs = self._get(key_below(path, ".zattrs"))
        group = GroupNode(2, self._checked(path, lambda: group_v2(zgroup, zattrs)))
        self._below(path, group, depth)
        return group

    def _group_v3(self, path: str, document: dict[str, Any], depth: int) -> GroupNode:
        group = GroupNode(3, self._checked(path, lambda: group_v3(document)))
        consolidated = document.get("consolidated_metadata")
        if consolidated is None:
            self._below(path, group, depth)
            return group
        if not isinstance(consolidated, dict) or consolidated.get("kind", "inline") != "inline":
            raise StoreError(f"{self.keys.where(path)} has consolidated metadata of an unknown kind")
        for name, entry in self._entries(path, consolidated.get("metadata")).items():
            where = key_below(path, name)
            if entry.get("node_type") == "array":
                self._place(group, path, name, self._checked(where, lambda: array_v3(entry)))
            else:
                self._place(group, path, name, GroupNode(3, self._checked(where, lambda: group_v3(entry))))
        return group

    def _from_zmetadata(self, path: str, document: dict[str, Any]) -> GroupNode:
        if document.get("zarr_consolidated_format") != 1:
            found = short(document.get("zarr_consolidated_format"))
            raise StoreError(f"{self.keys.where(key_below(path, '.zmetadata'))} has the format {found}; 1 is supported")
        entries = self._entries(path, document.get("metadata"))
        if ".zgroup" not in entries:
            raise StoreError(f"{self.keys.where(key_below(path, '.zmetadata'))} tells of no group")
        group = GroupNode(2, self._checked(path, lambda: group_v2(entries[".zgroup"], entries.get(".zattrs"))))
        for key, entry in entries.items():
            name, _, kind = key.rpartition("/")
            if not name or kind not in (".zarray", ".zgroup"):
                continue
            zattrs = entries.get(f"{name}/.zattrs")
            where = key_below(path, name)
            if kind == ".zarray":
                self._place(group, path, name, self._checked(where, lambda: array_v2(entry, zattrs)))
            else:
                self._place(group, path, name, GroupNode(2, self._checked(where, lambda: group_v2(entry, zattrs))))
        return group

    def _entries(self, path: str, metadata: Any) -> dict[str, dict[str, Any]]:
        """The documents in consolidated metadata, those of groups before those of what they hold."""
        if not isinstance(metadata, dict) or not all(isinstance(entry, dict) for entry in metadata.values()):
            raise StoreError(f"{self.keys.where(path)} has consolidated metadata that are no documents by name")
        for name in metadata:
            if not name:
                raise StoreError(f"{self.keys.where(path)} has consolidated metadata of something without a name")
            self._count(key_below(path, name), len(parts_of(name)))
        return dict(sorted(metadata.items(), key=lambda item: item[0].count("/")))

    def _place(self, root: GroupNode, path: str, name: str, node: Node) -> None:
        """Puts a node of consolidated metadata where it belongs. Groups that nobody told of are made."""
        *parents, last = parts_of(name)
        group = root
        for parent in parents:
            child = group.children.setdefault(parent, GroupNode(root.zarr_format, {}))
            if not isinstance(child, GroupNode):
                raise StoreError(f"{self.keys.where(key_below(path, name))} lies below {short(parent)}, an array")
            group = child
        if last in group.children:
            raise StoreError(f"{self.keys.where(key_below(path, name))} is there twice in consolidated metadata")
        group.children[last] = node

    def _below(self, path: str, group: GroupNode, depth: int) -> None:
        for name, link in self.keys.folders(path, _MAX_NODES).items():
            if link is not None:
                group.children[name] = LinkFacts("soft", link)
                continue
            node = self._node(key_below(path, name), depth + 1, group.zarr_format)
            if node is not None:
                group.children[name] = node

    def _count(self, path: str, depth: int) -> None:
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise StoreError(f"{self.keys.name} has more than {_MAX_NODES} groups and arrays")
        if depth > _MAX_DEPTH:
            raise StoreError(f"{self.keys.where(path)} lies deeper than {_MAX_DEPTH} groups")

    def _get(self, key: str) -> dict[str, Any] | None:
        raw = self.keys.get(key, MAX_JSON_BYTES)
        if raw is None:
            return None
        self.documents[key] = digest_of(raw)
        return self._checked(key, lambda: parse_json(raw))

    def _checked(self, path: str, parse: Callable[[], Any]) -> Any:
        try:
            return parse()
        except StoreError as error:
            raise StoreError(f"{self.keys.where(path)} cannot be used: {error}") from None


def digest_of(document: bytes) -> bytes:
    """Something that differs once a document says something else."""
    return hashlib.blake2b(document, digest_size=16).digest()


def facts_of(node: Node, stored: Callable[[str, ArrayMeta], int | None], path: str = "") -> Tree:
    """What a node is in words that no format owns. `stored` says how many bytes an array takes."""
    if isinstance(node, ArrayMeta):
        return node.facts(stored(path, node))
    children: dict[str, ArrayFacts | GroupFacts | LinkFacts] = {
        name: child if isinstance(child, LinkFacts) else facts_of(child, stored, key_below(path, name))
        for name, child in node.children.items()
    }
    return GroupFacts(children, node.attributes)
