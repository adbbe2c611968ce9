#!/usr/bin/env bash
# Hand what another program prints to the team: here the changes in a git repository.
#
#   examples/review_a_diff.sh @examples/two_providers
{ echo "Review this change. Name what is wrong with it, worst first."; git diff HEAD; } |
    massgen --automation --config "$1" --output-file review.md -
