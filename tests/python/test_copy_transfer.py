"""The copy-transfer model from Python: expressions and tables as values, and estimates beside a plain twin. The paper's
figures are checked in tests/model."""

import doctest
import json

import longshore as ls
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from longshore import model
from longshore.model import ResourceConstraint, ThroughputTable, TransferExpression, cray_t3d, evaluate, intel_paragon

PATTERNS = ["0", "1", "2", "64", "64[2]", "w"]


@pytest.mark.parametrize("place", [TransferExpression, ThroughputTable, evaluate])
def test_docstrings_are_true(place):
    test = doctest.DocTestParser().get_doctest(place.__doc__, dict(vars(model)), "model", None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_an_estimate_says_where_the_time_goes():
    estimate = evaluate("64C1 o (1S0 || Nd || 0D1) o 1Cw", cray_t3d)
    seconds = 1 / 33.3 + 1 / 69 + 1 / 38.5
    assert estimate.megabytes_per_second == pytest.approx(1 / seconds)
    assert estimate.bottleneck.name == "64C1"
    assert [part.name for part in estimate.parts] == ["64C1", "1S0", "Nd", "0D1", "1Cω"]
    assert [part.share_of_time * seconds for part in estimate.parts] == pytest.approx(
        [1 / 33.3, 0, 1 / 69, 0, 1 / 38.5]
    )
    assert [part.measured for part in estimate.parts] == [["64C1"], ["1S0"], ["Nd@2"], ["0D1"], ["1Cw"]]
    assert evaluate("16C1", cray_t3d).parts[0].measured == ["1C1", "64C1"]
    assert repr(estimate) == "ThroughputEstimate(14.2 MB/s; 64C1 takes 43% of the time)"


def test_expressions_are_values():
    packed = TransferExpression("64C1 ∘ (1S0 ‖ Nd ‖ 0D1)")
    send, network, deposit = map(TransferExpression, ["1S0", "Nd", "0D1"])
    assert TransferExpression("64C1") >> (send | network | deposit) == packed != send
    assert hash(TransferExpression("64C1 o (1S0 || Nd || 0D1)")) == hash(packed)
    assert eval(repr(packed)) == packed and str(packed) == "64C1 ∘ (1S0 ‖ Nd ‖ 0D1)"
    assert packed.composition == "sequence" and packed.parts[1].composition == "parallel"
    assert send.composition == "basic" and send.parts == [] and send != "1S0"
    for wrong in (lambda: send >> "Nd", lambda: send | 1):
        with pytest.raises(TypeError):
            wrong()


def test_tables_are_values():
    for table in (cray_t3d, intel_paragon):
        assert isinstance(table, ThroughputTable) and table.congestion == 2
        assert eval(repr(table)) == table
        assert ThroughputTable.from_json(table.to_json()) == table
    assert cray_t3d != intel_paragon
    assert cray_t3d.megabytes_per_second["Nadp@4"] == 20 and intel_paragon.megabytes_per_second["wC1"] == 45.1
    bus = ResourceConstraint("bus", {"S": 1, "D": 1}, megabytes_per_second=100)
    mine = ThroughputTable("mine", {"ωS0": 90, "0D1": 80, "Nd": 70}, congestion=1.5, constraints=[bus])
    assert list(mine.megabytes_per_second) == ["wS0", "0D1", "Nd"]
    assert mine.constraints == [bus] and bus.bytes_per_byte == {"S": 1, "D": 1}
    slowed = evaluate("wS0 || Nd || 0D1", mine)
    assert slowed.megabytes_per_second == 50 and slowed.bottleneck.name == "bus"
    keys = json.loads(mine.to_json())
    assert keys["constraints"] == [{"resource": "bus", "bytes_per_byte": {"S": 1, "D": 1}, "megabytes_per_second": 100}]


def but(**facts):
    """A table as JSON text, with other facts."""
    return json.dumps(json.loads(cray_t3d.to_json()) | facts)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: TransferExpression("1C1 o 64C1"), "64C1 reads pattern 64, and 1C1 before it writes 1, at character 7"),
        (lambda: evaluate("1F0", cray_t3d), "no figure for 1F0 of Cray T3D; of F its table has none"),
        (lambda: evaluate("64C64", cray_t3d), "of C its table has 1C1, 1C64, 64C1, 1Cω, ωC1"),
        (lambda: evaluate(3, cray_t3d), "expression is 3"),
        (lambda: ThroughputTable("x", {"1C1": "fast"}), "megabytes_per_second has '1C1': 'fast'"),
        (lambda: ThroughputTable("x", {"1C1": -1}), "rate of 1C1 of x"),
        (lambda: ThroughputTable("x", {"ωC1": 1, "wC1": 1}), "ωC1 is twice"),
        (lambda: ThroughputTable("x", {"1S0 || Nd": 1}), "no basic transfer"),
        (
            lambda: ResourceConstraint("bus", {"X": 1}, megabytes_per_second=1),
            "'X' is none of C, S, F, R, D, Nd and Nadp",
        ),
        (lambda: ThroughputTable.from_json("{}"), "not a table of throughputs: it has no 'format'"),
        (lambda: ThroughputTable.from_json("[" * 100_000), "not a table of throughputs: it is nested too deeply"),
        (lambda: ThroughputTable.from_json('{"format": "x", "version": 1}'), "'x' version 1 is not"),
        (lambda: ThroughputTable.from_json("[]"), "not a table of throughputs: it is []; it must be an object"),
        (lambda: ThroughputTable.from_json("1" * 5_000), "not a table of throughputs: it is no JSON"),
        (lambda: ThroughputTable.from_json(b"\xff"), "not a table of throughputs: it is no JSON"),
        (lambda: ThroughputTable.from_json(None), "not a table of throughputs: it is no JSON"),
        (lambda: ThroughputTable.from_json(but(constraints={})), "constraints is {}; it must be a list"),
        (lambda: ThroughputTable.from_json(but(constraints=[{}])), "throughputs: constraints[0] has no 'resource'"),
        (lambda: ThroughputTable.from_json(but(congestion="2")), "congestion is '2'; it must be a number"),
        (lambda: ThroughputTable.from_json(cray_t3d.to_json().replace("93.0", "null")), "'1C1': None"),
        (lambda: ThroughputTable.from_json(cray_t3d.to_json().replace(": 2.0", ": NaN")), "a congestion of nan"),
    ],
)
def test_mistakes_are_named(make, words):
    with pytest.raises((ls.ArgumentError, ls.ArgumentTypeError)) as caught:
        make()
    assert words in str(caught.value)


WORDS = ["(", ")", "o", "∘", "||", "‖", "w", "ω", "64", "1", "0", "C", "S0", "Nd", "Nadp", "@2", "[2]", "1C1", "0Dw"]


@given(st.text() | st.lists(st.sampled_from(WORDS)).map("".join))
@example("(" * 60_000)
@example("1C1 o " * 5_000 + "1C1")
def test_hostile_texts(text):
    try:
        made = TransferExpression(text)
    except ls.ArgumentError as error:
        assert "character" in str(error)
    else:
        assert TransferExpression(str(made)) == made


# Expressions as tuples ("o" or "||", members...) and names of basic transfers.


@st.composite
def trees(draw, read="1", write="w", deep=3):
    kind = draw(st.sampled_from(["basic", "o", "||"])) if deep else "basic"
    if kind == "basic":
        names = [f"{read}C{write}"]
        names += [f"{read}S0", f"{read}F0"] * (write == "0") + [f"0R{write}", f"0D{write}"] * (read == "0")
        return draw(st.sampled_from(names + ["Nd", "Nadp@3"] * (read == write == "0")))
    members = []
    ends = draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3)) + [write]
    for end in ends:
        members.append(draw(trees(read, end, deep - 1)))
        read = end if kind == "o" else draw(st.sampled_from(PATTERNS))
    return kind, *members


def text_of(tree):
    return tree if isinstance(tree, str) else "(" + f" {tree[0]} ".join(map(text_of, tree[1:])) + ")"


def built(tree):
    if isinstance(tree, str):
        return TransferExpression(tree)
    made = built(tree[1])
    for member in tree[2:]:
        made = made >> built(member) if tree[0] == "o" else made | built(member)
    return made


def letters(name):
    return next(kind for kind in ("Nadp", "Nd", "C", "S", "F", "R", "D") if kind in name)


def names_of(tree):
    return {tree} if isinstance(tree, str) else set().union(*map(names_of, tree[1:]))


def flat(tree):
    """Members of members of the same kind are members: constraints hold for all of them at once."""
    if isinstance(tree, str):
        return tree
    members = []
    for member in map(flat, tree[1:]):
        members += member[1:] if member[0] == tree[0] and not isinstance(member, str) else [member]
    return tree[0], *members


def plain(tree, rates, constraints):
    """The rate, and the bytes that each constraint's resource moves for a byte of data."""
    if isinstance(tree, str):
        rate, used = rates[tree], [uses.get(letters(tree), 0) for uses, _ in constraints]
    else:
        members = [plain(member, rates, constraints) for member in tree[1:]]
        used = [sum(column) for column in zip(*(used for _, used in members))]
        if tree[0] == "o":
            return 1 / sum(1 / rate for rate, _ in members), used
        rate = min(rate for rate, _ in members)
    return min([rate, *(most / use for use, (_, most) in zip(used, constraints) if use)]), used


@given(st.data())
def test_estimates_are_those_of_the_plain_twin(data):
    tree = data.draw(trees())
    rate = st.floats(0.01, 1e6)
    rates = {name: data.draw(rate) for name in sorted(names_of(tree))}
    uses = st.dictionaries(st.sampled_from(["C", "S", "F", "R", "D", "Nd", "Nadp"]), st.floats(0.1, 10), max_size=4)
    constraints = data.draw(st.lists(st.tuples(uses, rate), max_size=2))

    def estimate(rates):
        return evaluate(
            expression,
            ThroughputTable(
                "twin",
                rates,
                constraints=[
                    ResourceConstraint(f"resource {i}", uses, megabytes_per_second=most)
                    for i, (uses, most) in enumerate(constraints)
                ],
            ),
        )

    expression = built(tree)
    assert (
        expression == TransferExpression(text_of(tree)) == TransferExpression(str(expression)) == eval(repr(expression))
    )
    found = estimate(rates)
    assert found.megabytes_per_second == pytest.approx(plain(flat(tree), rates, constraints)[0])
    shares = [part.share_of_time for part in found.parts]
    assert sum(shares) == pytest.approx(1) and max(shares) == found.bottleneck.share_of_time
    # Each part that takes time takes it at its rate.
    for part in found.parts:
        assert part.share_of_time <= found.megabytes_per_second / part.megabytes_per_second * (1 + 1e-9)

    # What goes faster never makes the whole slower.
    name = data.draw(st.sampled_from(sorted(rates)))
    faster = estimate({**rates, name: rates[name] * 2}).megabytes_per_second
    assert faster >= found.megabytes_per_second * (1 - 1e-12)


STRIDES = st.lists(st.integers(2, 4096), min_size=1, max_size=5, unique=True)


@given(STRIDES, st.integers(2, 10_000), st.data())
def test_strides_between_lie_between(tabulated, wanted, data):
    rates = {f"{n}C1": data.draw(st.floats(1, 1e4)) for n in [1, *tabulated]}
    found = evaluate(f"{wanted}C1", ThroughputTable("x", rates)).megabytes_per_second
    below = max(n for n in [1, *tabulated] if n <= wanted)
    above = min((n for n in tabulated if n >= wanted), default=max(tabulated))
    ends = rates[f"{below}C1"], rates[f"{above}C1"]
    assert min(ends) * (1 - 1e-12) <= found <= max(ends) * (1 + 1e-12)
