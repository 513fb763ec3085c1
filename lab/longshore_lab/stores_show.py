"""What is shown of `longshore bench stores`: a table a task, bars of seconds and of bytes, and what was hoped for."""

from .machine import grouped
from .report import COPY as GREY
from .report import OURS, Table, bars, duration, median, plain, sheet
from .stores_tasks import ALLOWED_BYTES, COPY, LIMITED, LONGSHORE

_NO_CEILING = "none"


def of_tasks(rows):
    """The rows that bring an array from grid to grid."""
    return [row for row in rows if "target" in row]


def tables(result):
    copies = {(row["case"], row["codec"]): row for row in of_tasks(result["rows"]) if row["contender"] == COPY}

    def against_copy(row):
        copy = copies.get((row["case"], row["codec"]))
        return f"{row['seconds_median'] / copy['seconds_median']:.2f}" if copy else ""

    columns = {"contender": "contender", "ceiling": lambda row: ceiling_words(row), "median": median}
    columns |= {"× cp": against_copy}
    columns |= {
        "read": lambda row: megabytes(row["bytes_read"]),
        "written": lambda row: megabytes(row["bytes_written"]),
    }
    columns |= {"bytes ÷ V": lambda row: f"{row['bytes_over_v']:.2f}"}
    columns |= {"memory": lambda row: megabytes(row["memory_over_idle_bytes"]), "within": _within}
    columns |= {"predicted": lambda row: duration(row["seconds_predicted"]) if "seconds_predicted" in row else ""}
    columns |= {"predicted ÷ bytes": lambda row: f"{row['predicted_ratio']:.3f}" if "predicted_ratio" in row else ""}
    for (key, codec), rows in grouped(of_tasks(result["rows"]), "case", "codec").items():
        first = rows[0]
        grids = " → ".join("×".join(map(str, first[name])) for name in ("chunks", "target"))
        shape, volume = "×".join(map(str, first["shape"])), megabytes(first["payload_bytes"])
        title = f"{key}, {codec}: {first['title']}\n{shape} {first['dtype']} ({volume}), {grids}"
        yield Table.of(title, rows, columns, optional=("predicted ÷ bytes", "written", "read", "predicted", "× cp"))
    for key, rows in grouped([row for row in result["rows"] if "target" not in row], "case").items():
        heads = {name: name for row in rows for name in row.get("shown", {})}
        shown = {head: (lambda row, head=head: str(row.get("shown", {}).get(head, ""))) for head in heads}
        yield Table.of(
            f"{key}: {rows[0]['title']}", rows, {"contender": "contender", "median": median, **shown}, words="how"
        )
    if result["aims"]:
        columns = {"aim": "aim", "limit": lambda aim: f"{'≥' if aim['at_least'] else '≤'} {aim['limit']:g}"}
        columns |= {"reached": lambda aim: f"{aim['reached']:.3g}", "": lambda aim: "met" if aim["met"] else "missed"}
        yield Table.of("aims", result["aims"], {**columns, "at": "worst"}, words="at")


def ceiling_words(row):
    return _NO_CEILING if row["ceiling_bytes"] is None else megabytes(row["ceiling_bytes"])


def _within(row):
    return {None: "", True: "yes", False: "NO"}[row["within_ceiling"]]


def megabytes(count):
    return f"{count / 1e6:.1f} MB" if count < 10e6 else f"{count / 1e6:,.0f} MB"


def figure(result):
    """A row of panels a task and codec: seconds, bytes over V and memory, by ceiling and contender."""
    from matplotlib import colormaps

    rows = of_tasks(result["rows"])
    groups, names = grouped(rows, "case", "codec"), list(dict.fromkeys(row["contender"] for row in rows))
    peers = [name for name in names if not name.startswith(LONGSHORE) and name != COPY]
    colours = {LONGSHORE: OURS, LIMITED: "#8fbbe0", COPY: GREY}
    colours |= {name: colormaps["Dark2"](k % 8) for k, name in enumerate(peers)}
    measures = (
        ("seconds_median", "seconds, until the disk has it", 1.0),
        ("bytes_over_v", "bytes read and written ÷ V", 1.0),
        ("memory_over_idle_bytes", "memory over idle, MB", 1e-6),
    )
    figure, grid = sheet(result, len(groups), len(measures), 5.2 * len(measures) + 1.5, 2.6 * max(1, len(groups)) + 0.6)
    for line, ((key, codec), of) in zip(grid, groups.items()):
        ceilings = list(dict.fromkeys(ceiling_words(row) for row in of))
        found = {(row["contender"], ceiling_words(row)): row for row in of}
        for panel, (what, words, unit) in zip(line, measures):
            there = [[name for name in names if (name, ceiling) in found] for ceiling in ceilings]
            for place, present in enumerate(there):
                for k, name in enumerate(present):
                    value = found[name, ceilings[place]][what] * unit
                    bars(panel, k, max(map(len, there)), {place: value}, name, colours[name])
            plain(panel, f"{key}, {codec}" if panel is line[0] else "", "ceiling", words)
            panel.set_xticks(range(len(ceilings)), ceilings)
    if groups:
        handles = {}
        for panel in grid[:, 0]:
            handles |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels())}
        grid[0, -1].legend(handles.values(), handles.keys(), fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


# --- aims


def aims(rows):
    """What was hoped for and what is there, of the rows that were measured; each with the worst."""
    out, arrays = [], of_tasks(rows)
    ours = [row for row in arrays if row["contender"] == LONGSHORE]

    def aim(what, limit, found, at_least=False):
        if found:
            value, where = (min if at_least else max)(found)
            met = value >= limit if at_least else value <= limit
            out.append(
                {"aim": what, "limit": limit, "at_least": at_least, "reached": value, "worst": where, "met": met}
            )

    def at(key, contender=LONGSHORE, codec=None, n=None):
        of = [row for row in arrays if row["case"] == key and row["contender"] == contender]
        return [row for row in of if codec in (None, row["codec"]) and n in (None, row["n"])]

    def times(what, limit, slow, quick):
        """How often the quick one's time goes into the slow one's, at the same ceiling where that has one."""
        found = []
        for s in slow:
            same = [q for q in quick if s["codec"] == q["codec"] and s["n"] in (None, q["n"])]
            found += [(s["seconds_median"] / q["seconds_median"], _name(q)) for q in same]
        aim(what, limit, found, True)

    held = [(r["memory_over_idle_bytes"] / (r["ceiling_bytes"] + ALLOWED_BYTES), _name(r)) for r in ours]
    aim("memory over the ceiling and 64 MB", 1.0, held)
    limited = [row for row in arrays if row["contender"] == LIMITED]
    held = [(r["memory_over_idle_bytes"] / (r["ceiling_bytes"] + ALLOWED_BYTES), _name(r)) for r in limited]
    aim("the same in a cgroup with that limit", 1.0, held)
    for key, n, limit in (("B", 256, 2.02), ("C", 512, 2.02), ("F", 512, 2.3), ("A", 1000, 3.4)):
        # What chunks hold beyond the array's end has to be moved too.
        found = [(row["bytes_over_stored"], _name(row)) for row in at(key, codec="raw", n=n)]
        aim(f"bytes of {key} at {n} MB over V", limit, found)
    for words, raw in (("raw", True), ("compressed", False)):
        of = [row for row in ours if row.get("predicted_ratio") and (row["codec"] == "raw") == raw]
        off = [(abs(1 / row["predicted_ratio"] - 1), _name(row)) for row in of]
        aim(f"{words}: bytes beside those predicted, off by", 0.03, off)
    faster = _over_peers(at("A", codec="zstd"), arrays)
    aim("A zstd: best peer's time at its memory ÷ ours", 2.0, faster, True)
    times("D: h5repack's time ÷ ours", 10.0, at("D", "h5repack"), at("D", n=256))
    times("D: tuned h5py's time ÷ ours", 2.0, at("D", "h5py, tuned cache"), at("D", n=256))
    times("NetCDF: nccopy's time ÷ ours", 3.0, at("netcdf", "nccopy"), at("netcdf", n=512))
    same = [(float(row["same_header"]), _name(row)) for row in at("netcdf") if "same_header" in row]
    aim("NetCDF: ncdump -h says the same", 1.0, same, True)
    times("shards: zarr-python's time ÷ ours", 5.0, at("shards", "zarr-python"), at("shards"))
    for row in rows:
        for what, limit, value, at_least in row.get("aims", ()):
            aim(what, limit, [(value, row.get("name", row["case"]))], at_least)
    return out


def _name(row):
    return f"{row['case']} {row['codec']} {row['n']} MB"


def _over_peers(ours, rows):
    """For every peer's row, its time over that of ours at the largest ceiling that is not above what the peer held, or
    at the smallest one."""
    found = []
    for row in rows if ours else ():
        first = ours[0]
        same = row["case"] == first["case"] and row["codec"] == first["codec"]
        if not same or row["contender"].startswith(LONGSHORE) or row["contender"] == COPY:
            continue
        below = [r for r in ours if r["ceiling_bytes"] <= row["memory_over_idle_bytes"]]
        least = min(ours, key=lambda r: r["ceiling_bytes"])
        chosen = max(below, key=lambda r: r["ceiling_bytes"], default=least)
        held = f"{row['contender']} with {megabytes(row['memory_over_idle_bytes'])}"
        found.append((row["seconds_median"] / chosen["seconds_median"], f"{held}, {_name(chosen)}"))
    return found
