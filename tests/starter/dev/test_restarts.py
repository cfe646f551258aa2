from starter.dev.restarts import Restarts


def test_delays_grow_with_deaths_in_a_row_and_shrink_after_quiet_time() -> None:
    restarts = Restarts(proven=True)
    assert [restarts.died(now) for now in (0.0, 1.0, 2.0)] == [0.2, 0.4, 0.8]
    assert restarts.died(1000.0) == 0.2


def test_delays_have_a_bound_and_a_process_once_ready_is_never_given_up() -> None:
    restarts = Restarts(proven=True)
    assert [restarts.died(now / 10) for now in range(100)][-1] == 30.0


def test_five_quick_deaths_at_the_start_are_the_end() -> None:
    restarts = Restarts()
    assert [restarts.died(float(now)) is None for now in range(5)] == [False, False, False, False, True]


def test_slow_deaths_at_the_start_are_not_the_end() -> None:
    restarts = Restarts()
    assert None not in [restarts.died(now * 10.0) for now in range(20)]
