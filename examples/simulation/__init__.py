"""The jury theorem, put through the real orchestrator.

    python -m examples.simulation                 # the tables below, a few minutes
    python -m examples.simulation --trials 100    # a first look
    python -m examples.simulation --seed 7        # other random numbers; the same seed prints the same tables
    python -m examples.simulation substance       # votes by substance against votes by wording
    python -m examples.simulation early           # what early decisions save
    python -m examples.simulation decide          # tests that agents write against votes
    python -m examples.simulation lots            # two agents that vote for themselves

Every trial is a whole run of `massgen_mcp.orchestration.conduct.Conductor`: agents answer independently, ballots are
shown under shuffled neutral names, votes are cast, counted and decided, the winner presents. Only the models are
simulated, and nothing is written to disk. What comes out is laid beside the exact probability, which `exact` computes
without the orchestrator. They must agree within Monte-Carlo error; if a vote were credited to the wrong answer, a
ballot mixed up or a tie decided with a bias, they would not.

**What this shows:** that the coordination adds no error of its own, and what voting can and cannot do under stated
assumptions. **What it does not show:** anything about real models. Every probability below is assumed, not measured.

The questions (`world`). A question has `choices` options, one of them right. An agent is right with probability p. A
wrong agent picks the question's common wrong option with probability c, else any wrong option uniformly (the common one
included). With probability rho a question has a common cause: one draw is made, and all agents answer alike.

The voters (`agents`).

- Majority: everybody votes for the option it answered itself. An answer is a letter and unique noise, so agents that
  agree have different answers; they all vote for the one among theirs whose text sorts first. This is the Condorcet
  jury with plurality voting. In a run-off, whoever's option is not tied votes at random.
- Judges: with probability s (skill) a voter recognises right answers, and votes for one of those on the ballot, picked
  at random; if it does not recognise them, or if there are none, it votes for any answer on the ballot at random.
- Loyal: everybody votes for its own answer.

Two variants change the simulated judges, not the product; they tell what its design would lose if it were otherwise:

- authors shown: a voter votes for its own answer with probability `self_bias` before it judges anything.
- votes visible: a voter that sees votes follows the leader (one of the leaders) with probability `herding`, before
  anything else. It sees them through a side channel of the simulation.

The product shows no votes to voters and hides who wrote the others' answers. It does mark the voter's own answer as its
own. So a real model with a bias for itself can act on it here, too; what is hidden is everybody else.
"""
