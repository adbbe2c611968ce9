#!/usr/bin/env bash
# On the pull request, without any secret: what its own check prints. Whoever wrote the pull request can change all of
# this; review.sh takes it for evidence that may be made up.
set -euo pipefail
directory="$RUNNER_TEMP/massgen-review"
mkdir -p "$directory"
date > "$directory/collected" # an artifact holds one file at least
if [ -n "$CHECK" ]; then
    code=0
    bash -c "$CHECK" > "$directory/output" 2>&1 || code=$?
    { printf '%s: exit code %s\n' "$CHECK" "$code"; tail -c 20000 "$directory/output"; } > "$directory/evidence"
    rm "$directory/output"
fi
