#!/usr/bin/env bash
# Three agents fix a bug, and the tests decide, not the best words. Scripted models: no key, the same result every time.
#
#   examples/evidence_decides.sh shop      (makes a small repository in the new directory `shop`)
set -e
mkdir -p "$1/tests" && cd "$1"
cat >stats.py <<'END'
def total(numbers):
    return sum(numbers)


def mean(numbers):
    return total(numbers) / len(numbers) + 1
END
for name in total mean; do
    cat >"tests/test_$name.py" <<END
import unittest

from stats import $name


class Test(unittest.TestCase):
    def test(self):
        self.assertEqual($name([1, 1, 4]), $([ "$name" = total ] && echo 6 || echo 2))
END
done
git init -q && git add . && git -c user.name=me -c user.email=me@example.org commit -qm "A mean that is not right"

here="$(basename "$PWD")"
cat >team.yaml <<END
agents:
  - id: quick
    backend:
      type: scripted
      script:
        - call: edit_file
          arguments: { path: $here/stats.py, old: "return sum(numbers)", new: "return sum(numbers) - len(numbers)" }
        - answer: Done. All tests pass, I ran every one of them twice.
        - vote: twice
        - vote: off by one
  - id: sly
    backend:
      type: scripted
      script:
        - call: edit_file
          arguments: { path: $here/tests/test_mean.py, old: ", 2)", new: ", 3)" }
        - answer: The test expected the wrong number.
        - vote: twice
        - vote: off by one
  - id: careful
    backend:
      type: scripted
      script:
        - call: edit_file
          arguments: { path: $here/stats.py, old: "len(numbers) + 1", new: "len(numbers)" }
        - answer: The mean is off by one.
        - vote: off by one
orchestrator:
  context_paths: [{ path: . }]
  checks: [python3 -m unittest -q tests/test_total.py, python3 -m unittest -q tests/test_mean.py]
  checks_policy: goal
END
massgen --automation --config team.yaml "tests/test_mean.py fails. Find out why, and fix it."
cd .massgen/massgen_logs/*/
echo "--- what the checks said"
grep -o 'checks of .*' massgen.log | grep -v 'Choose one of' | sed 's/python3 -m unittest -q //g' | cut -c1-160
echo "--- the winner's patch"
cat final/*/changes.patch
