#!/usr/bin/env bash
# Decide by the exit code what to do about a run.
#
#   examples/exit_codes.sh team.yaml "Question"
output="$(massgen --automation --config "$1" "$2")"
case $? in
    0) echo "answered by $(sed -n 's/^WINNER: //p' <<<"$output"): $(sed -n 's/^ANSWER_FILE: //p' <<<"$output")" ;;
    1) echo "correct the command line, the config or the keys" ;;
    2) echo "the team failed: $(sed -n 's/^FAILED: //p' <<<"$output")" ;;
    3) echo "out of time; so far: $(sed -n 's/^ANSWER_PREVIEW: //p' <<<"$output")" ;;
    4) echo "interrupted" ;;
esac
