"""The model of decoding or recomputing, from Python; its numbers are checked in tests/model."""

import doctest

import longshore as ls
import pytest
from longshore import model


@pytest.mark.parametrize("place", [model, model.threshold_instructions, model.break_even_uses, model.assembly_speedup])
def test_docstrings_are_true(place):
    test = doctest.DocTestParser().get_doctest(place.__doc__, dict(vars(model)), "model", None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_times_and_the_break_even_meet():
    rates = model.MachineRates(
        instructions_per_second=2e7,
        read_words_per_second=1e7,
        random_read_words_per_second=1e7,
        write_words_per_second=1e7,
        random_write_words_per_second=1e7,
    )
    costs = model.LoopCosts(decode_instructions=3, recompute_instructions=7, encode_instructions=8)
    assert rates == model.iwarp_rates and costs == model.iwarp_dynamic_costs != model.iwarp_static_costs
    assert rates != 1 and costs != rates
    uses = model.break_even_uses(rates, costs, 4)
    assert uses == 4
    recompute = model.recompute_seconds(rates, costs, 4, 100)
    assert model.decode_seconds(rates, costs, 4, 100, uses) == pytest.approx(recompute)
    shared = model.encode_seconds(rates, costs, 4, 100) / uses
    assert model.assembly_seconds(rates, costs, 100) + shared == pytest.approx(recompute)
    assert model.assembly_speedup(rates, costs, 4) == pytest.approx(
        recompute / model.assembly_seconds(rates, costs, 100)
    )


def test_they_show_what_they_hold():
    assert eval(repr(model.paragon_rates), vars(model)) == model.paragon_rates
    assert eval(repr(model.paragon_static_costs), vars(model)) == model.paragon_static_costs
    assert "r_rr" in model.MachineRates.random_read_words_per_second.__doc__
    assert "n_au" in model.recompute_seconds.__doc__


def test_mistakes_are_named():
    with pytest.raises(ls.ArgumentError, match="n_g, generate_instructions, is -1"):
        model.break_even_uses(model.iwarp_rates, model.iwarp_static_costs, -1)
    with pytest.raises(TypeError):
        model.MachineRates(1, 2, 3, 4, 5)  # five numbers without their names
