import threading
import time

import numpy as np
import pytest

from dovetail.core.pieces import NUMBERS, THREADS, each_piece, piece_of, pieces


@pytest.mark.parametrize("blocks", [0, 1, NUMBERS - 1, NUMBERS, 2 * NUMBERS + 1])
@pytest.mark.parametrize("width", [1, 7, 2 * NUMBERS])
def test_every_block_is_in_one_piece(blocks, width):
    blocks = min(blocks, 50) if width > NUMBERS else blocks
    seen = [np.arange(blocks)[some] for some in pieces(blocks, width)]
    assert np.array_equal(np.concatenate([np.empty(0, dtype=int), *seen]), np.arange(blocks))
    assert all(part.size * width <= max(NUMBERS, width) for part in seen)


def test_numbers_that_all_have_are_every_piece():
    some = slice(2, 4)
    assert piece_of(np.array(3.0), some) == 3.0
    assert np.array_equal(piece_of(np.ones((1, 3)), some), np.ones((1, 3)))
    assert np.array_equal(piece_of(np.arange(12.0).reshape(6, 2), some), [[4.0, 5.0], [6.0, 7.0]])


def test_threads_share_the_pieces_of_many(monkeypatch):
    monkeypatch.setattr("dovetail.core.pieces.MANY", 1)
    seen, numbers = set(), np.random.default_rng(0).standard_normal(40 * NUMBERS)

    def most(some):
        seen.add(threading.get_ident())
        time.sleep(0.001)  # long enough for the others to begin
        return numbers[some].max()

    before = THREADS.set(3)
    try:
        found = each_piece(most, numbers.size, 1)
    finally:
        THREADS.reset(before)
    assert max(found) == numbers.max()
    assert threading.get_ident() not in seen and len(seen) > 1
    seen.clear()
    assert max(each_piece(most, numbers.size, 1)) == numbers.max()
    assert seen == {threading.get_ident()}
