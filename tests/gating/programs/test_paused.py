"""The way to a decision in a program that pauses: each question once for each answer, and none is answered before it was asked."""

from __future__ import annotations

import pytest


def asks(program, function):
    with pytest.raises(program.pause):
        program.run(function)
    return program.asked[-1]


def test_a_question_pauses_the_program_until_it_is_decided(grace, program, says):
    """The word to look into the inbox decides nothing itself."""
    pay = grace.gate(floor="confirm", name="pay")(lambda euros: f"paid {euros}")
    approval, arguments, _ = asks(program, lambda: pay(5))
    assert ({"euros": 5}, 1) == (arguments, program.remembered)
    program.answers.append(says("retry", looks=True))
    assert approval == asks(program, lambda: pay(5))[0]
    grace.approvals.approve(approval, by="ana")
    program.answers.append(says("retry", looks=True))
    assert "paid 5" == program.run(lambda: pay(5)) == program.run(lambda: pay(5))
    assert (1, "done") == (program.remembered, grace.approvals.get(approval).state)


def test_an_answer_that_was_there_before_its_question_is_void(grace, program, says):
    """It was meant for another question, also when the program runs once more."""
    ran = []
    pay = grace.gate(floor="confirm", name="pay")(ran.append)
    program.answers.append(says("proceed"))
    approval, _, _ = asks(program, lambda: pay(5))
    asks(program, lambda: pay(5))
    assert ([], "pending") == (ran, grace.approvals.get(approval).state)
    program.answers.append(says("proceed"))
    program.run(lambda: pay(5))
    assert [5] == ran


def test_the_next_call_never_gets_an_answer_of_this_one(grace, program, says):
    """A call that took two answers takes two each time, though it is decided before the second."""
    ran = []
    first = grace.gate(floor="confirm", name="first")(ran.append)
    second = grace.gate(floor="confirm", name="second")(ran.append)

    def body():
        first(1)
        second(2)

    asks(program, body)
    program.answers.append(says("proceed", problem="not usable"))
    assert "not usable" == asks(program, body)[2]
    program.answers.append(says("proceed"))
    approval, _, _ = asks(program, body)
    assert ([1], "pending") == (ran, grace.approvals.get(approval).state)
    for _ in range(2):
        assert approval == asks(program, body)[0]
    program.answers.append(says("cancel"))
    with pytest.raises(Exception, match="fake refused second"):
        program.run(body)
    assert [1] == ran


def test_a_standing_approval_asks_nobody(grace, program):
    """The program does not pause, now or later."""
    grace.approvals.grant("pay", {"euros": {"from": 0, "to": 10}}, until="1h", uses=5, by="ana")
    pay = grace.gate(floor="confirm", name="pay")(lambda euros: f"paid {euros}")
    assert "paid 5" == program.run(lambda: pay(5)) == program.run(lambda: pay(5))
    assert [] == program.asked
    assert 1 == grace.approvals.standing()[0].used
