"""Where the links of a tree lead to."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator

from .array import GroupFacts, LinkFacts, Tree

_MOST_STEPS = 64


def resolved(group: str, path: str) -> str:
    """A path that is said from a group, as said from the root."""
    return posixpath.normpath(f"/{group}/{path}").strip("/")


def soft_links_to(tree: Tree, left: Collection[str]) -> dict[str, str]:
    """The soft links of a tree that lead to one of these paths, each with that path, also by way of other links."""
    found = ((path, _end_of(tree, path.rpartition("/")[0], link)) for path, link in _links_of(tree, ""))
    return {path: end for path, end in found if end in left}


def _links_of(tree: Tree, prefix: str) -> Iterator[tuple[str, LinkFacts]]:
    for name, child in tree.children.items() if isinstance(tree, GroupFacts) else ():
        if isinstance(child, GroupFacts):
            yield from _links_of(child, f"{prefix}{name}/")
        elif isinstance(child, LinkFacts) and child.kind == "soft":
            yield prefix + name, child


def _end_of(tree: Tree, group: str, link: LinkFacts) -> str:
    """The path of what a link of a group leads to; "" where that is nothing of the tree."""
    words = _words_of(group, link)
    for _ in range(_MOST_STEPS):
        node: Tree | LinkFacts | None = tree
        passed = 0
        while passed < len(words) and isinstance(node, GroupFacts):
            node = node.children.get(words[passed])
            passed += 1
        if not isinstance(node, LinkFacts):
            return "/".join(words) if node is not None and passed == len(words) else ""
        if node.kind not in ("soft", "hard"):
            return ""
        words = [*_words_of("/".join(words[: passed - 1]), node), *words[passed:]]
    return ""


def _words_of(group: str, link: LinkFacts) -> list[str]:
    """The names on the way from the root to where a link of a group says."""
    if link.kind == "hard":
        return resolved(group, link.target).split("/")
    path = link.target if link.target.startswith("/") else f"{group}/{link.target}"
    return [word for word in path.split("/") if word not in ("", ".")]  # a name of two dots is one like others
