"""The three message models (section 2) from Python: the same arrays, and hostile messages refused."""

import longshore as ls
import numpy as np
import pytest

RNG = np.random.default_rng(1)
N = 97
RELATIONS = {
    "empty": ls.AddressRelation.from_indices([], [], "f8"),
    "permutation": ls.AddressRelation.from_indices(RNG.permutation(N), RNG.permutation(N), "f8"),
    "replicated": ls.AddressRelation.from_indices(np.full(N, 5), RNG.permutation(N), "f8"),
    "transposed": ls.AddressRelation.strided((7, 13), (8, 56), (104, 8), "f8"),
    "scatter-add": ls.AddressRelation.from_indices(RNG.permutation(N), np.arange(N) % 7, "f8", reduce="add"),
}


@pytest.fixture(params=RELATIONS)
def relation(request):
    return RELATIONS[request.param]


@pytest.mark.parametrize("kind", ["auto", "aapair", "dmrlec", "nest"])
def test_all_models_give_the_same_array(relation, kind):
    source, before = RNG.random(N), RNG.random(N)
    expected = relation.move(source, before.copy())

    message = ls.sender_half(relation, kind).assemble(source)
    np.testing.assert_array_equal(ls.receiver_half(relation, kind).disassemble(message, before.copy()), expected)

    put = ls.put_message(relation, source, kind)
    np.testing.assert_array_equal(ls.deliver_put(put, before.copy()), expected)
    np.testing.assert_array_equal(ls.deliver_put(put.tobytes(), before.copy()), expected)
    if relation.reduce is None:
        again = ls.put_message(ls.encode(relation), source, kind)  # an encoding is as good as a relation
        np.testing.assert_array_equal(ls.deliver_put(again, before.copy()), expected)

    request = ls.get_request(relation, kind)
    payload = ls.answer_get(request, source)
    assert payload.dtype == source.dtype
    np.testing.assert_array_equal(payload, message)
    np.testing.assert_array_equal(relation.disassembler()(payload, before.copy()), expected)


def test_a_sender_is_used_again(relation):
    sender = ls.PutSender(relation)
    message = np.empty(sender.message_bytes, np.uint8)
    assert sender.message_bytes == sender.address_bytes + relation.bytes
    for _ in range(3):
        source = RNG.random(N)
        assert sender(source, message) is message
        np.testing.assert_array_equal(ls.deliver_put(message, np.zeros(N)), relation.move(source, np.zeros(N)))
    with pytest.raises(ls.LocalArrayError, match="message"):
        sender(RNG.random(N), message[:-1])


def test_bounds_and_protection():
    relation, source = RELATIONS["permutation"], RNG.random(N)
    put, request = ls.put_message(relation, source), ls.get_request(relation)
    for small in (np.zeros(N - 1), np.zeros(0)):
        with pytest.raises(ls.LocalArrayError, match="destination"):
            ls.deliver_put(put, small)
        assert not small.any()
        with pytest.raises(ls.LocalArrayError, match="source"):
            ls.answer_get(request, small, max_bytes="1 MB")
    frozen = np.zeros(N)
    frozen.flags.writeable = False
    with pytest.raises(ls.LocalArrayError, match="read-only"):
        ls.deliver_put(put, frozen)
    memory = np.zeros(put.nbytes + 8 * N, np.uint8)
    memory[: put.nbytes] = put
    with pytest.raises(ls.LocalArrayError, match="overlap"):
        ls.deliver_put(memory[: put.nbytes], memory[8:])
    with pytest.raises(ls.LocalArrayError, match="contiguous"):
        ls.deliver_put(memory[::2], source)


def test_a_request_for_more_than_there_is():
    request = ls.get_request(ls.AddressRelation.strided((1 << 20, 1 << 20), (0, 0), (8 << 20, 8), "f8"))
    assert len(request) < 1000
    with pytest.raises(ls.ArgumentError, match="at most"):
        ls.answer_get(request, np.zeros(N))
    twice = ls.AddressRelation.from_indices([0] * 2 * N, np.arange(2 * N), "f8")
    with pytest.raises(ls.ArgumentError, match="at most"):
        ls.answer_get(ls.get_request(twice), np.zeros(N))
    assert ls.answer_get(ls.get_request(twice), np.ones(N), max_bytes=10**4).sum() == 2 * N


@pytest.mark.parametrize("kind", ["aapair", "aablk", "dmrle", "dmrlec", "huffman", "nest"])
def test_damaged_messages_are_refused(relation, kind):
    source = RNG.random(N)
    sender = ls.PutSender(relation, kind)
    put, request = sender(source), np.frombuffer(ls.get_request(relation, kind), np.uint8)
    for at in range(0, sender.address_bytes, 3):
        damaged, destination = put.copy(), np.zeros(N)
        damaged[at] ^= 1 << (at % 8)
        with pytest.raises(ls.LongshoreError):
            ls.deliver_put(damaged, destination)
        assert not destination.any()
    for at in range(0, len(request), 3):
        damaged = request.copy()
        damaged[at] ^= 1 << (at % 8)
        with pytest.raises(ls.LongshoreError):
            ls.answer_get(damaged, source)
    for end in range(0, put.nbytes, 7):
        with pytest.raises(ls.ArgumentError):
            ls.deliver_put(put[:end], np.zeros(N))
    with pytest.raises(ls.ArgumentError):
        ls.answer_get(put, source)
    with pytest.raises(TypeError):
        ls.PutSender(7)
