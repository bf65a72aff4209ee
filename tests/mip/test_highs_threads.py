"""HiGHS refuses a run that asks for other threads than the first one in its thread did."""

import threading

import highspy

import dovetail as dt
from dovetail.testing.problems import bowl


def program():
    mip = dt.Mip(
        cost=[-1.0, -2.0, -3.0], A=[[1.0, 2.0, 2.5]], row_lower=0.0, row_upper=4.2, upper=3.0, integer=True
    )
    return dt.Problem(mip)


def solved(n_jobs):
    return dt.solve(program(), log=False, n_jobs=n_jobs).status


def own_program(threads):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", threads)
    return highs.maximize(highs.addVariable(lb=0, ub=3, type=highspy.HighsVarType.kInteger))


def test_solves_in_other_threads_with_other_numbers():
    seen = [solved(1)]
    for here, there in ((2, 2), (1, 1)):
        other = threading.Thread(target=lambda number=there: seen.append(solved(number)))
        other.start()
        other.join()
        seen.append(solved(here))
    assert seen == ["optimal"] * 5


def test_a_solve_within_a_callback():
    def again(event):
        if not inner:
            inner.append(solved(2))

    inner = []
    alone, outer = (
        dt.solve(bowl(), dt.SequentialLinear(starts=3), log=False, callback=callback)
        for callback in (None, again)
    )
    assert inner == ["optimal"]
    assert (outer.iterations, outer.stop_reason) == (alone.iterations, alone.stop_reason)


def test_the_users_own_programs_run_as_before():
    for threads in (2, 1):
        assert own_program(threads) == highspy.HighsStatus.kOk
        assert solved(1) == "optimal"
        assert own_program(3 - threads) == highspy.HighsStatus.kOk
        highspy.Highs.resetGlobalScheduler(True)
