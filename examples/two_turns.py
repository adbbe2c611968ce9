"""Ask a team from Python, then ask on: the second turn knows question and answer of the first.

python examples/two_turns.py @examples/scripted "Should we rewrite it or refactor it?" "And what first?"
"""

import asyncio
import sys

import massgen_mcp as massgen


async def main(config: str, question: str, further: str) -> None:
    first = await massgen.run(question, config=config)
    print(first["final_answer"])
    second = await massgen.run(further, config=config, session_id=first["session_id"])
    print(second["final_answer"])
    print(f"{second['selected_agent']} won with {second['vote_results']['vote_counts']}; cost: {second['cost']}")


if __name__ == "__main__":
    config, question, further = sys.argv[1:]
    asyncio.run(main(config, question, further))
