"""A review as data: findings with file and line, which the team agrees on by vote.

python examples/review_findings.py          Scripted models: no key, the same result every time.
"""

import asyncio
import json
from typing import Any

import massgen_mcp as massgen

DIFF = """\
--- a/cache.py
+++ b/cache.py
@@ -10,2 +10,2 @@
-        if time.time() - stored > self.ttl:
+        if time.time() - stored > self.ttl * 1000:
"""


def reviewer(name: str, vote: str, **finding: object) -> dict[str, Any]:
    document = {"summary": "One thing.", "findings": [{"file": "cache.py", "line": 10, **finding}]}
    script = [{"answer": json.dumps(document)}, {"vote": vote}]
    return {"id": name, "backend": {"type": "scripted", "script": script}}


TEAM = {
    "agents": [
        reviewer("ada", "Lives", severity="minor", title="Magic number", detail="1000 has no name."),
        reviewer(
            "bo", "Lives", severity="blocker", title="Lives a thousand times too long",
            detail="`ttl` and `time.time()` are both seconds.", fix="Compare with `self.ttl`.",
        ),
    ],
    "orchestrator": {"answer_format": "findings", "decide": "vote"},
}  # fmt: skip


async def main() -> None:
    result = await massgen.run(f"Review this change.\n\n{DIFF}", config_dict=TEAM)
    for finding in json.loads(result["final_answer"])["findings"]:
        print(f"{finding['file']}:{finding['line']}: {finding['severity']}: {finding['title']}. {finding['fix']}")


asyncio.run(main())
