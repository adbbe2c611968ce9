#!/usr/bin/env bash
# On the pull request, without any secret: which one it is, and what its own check prints. Whoever wrote the pull
# request can change all of this; review.sh believes nothing of it.
set -euo pipefail
directory="$RUNNER_TEMP/massgen-review"
mkdir -p "$directory"
printf '%s\n' "$NUMBER" > "$directory/number"
if [ -n "$CHECK" ]; then
    code=0
    bash -c "$CHECK" > "$directory/output" 2>&1 || code=$?
    { printf '%s: exit code %s\n' "$CHECK" "$code"; tail -c 20000 "$directory/output"; } > "$directory/evidence"
    rm "$directory/output"
fi
