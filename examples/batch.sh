#!/usr/bin/env bash
# Ask several questions one after the other and keep each answer in a file of its own.
#
#   CONFIG=team.yaml examples/batch.sh answers "Question 1" "Question 2"
set -u
config="${CONFIG:-@examples/scripted}"
folder="$1"
shift
questions=("$@")

mkdir -p "$folder"
failed=0
for i in "${!questions[@]}"; do
    massgen --automation --config "$config" \
        --output-file "$folder/answer_${i}.txt" \
        "${questions[$i]}" || failed=$((failed + 1))
done

echo "Answers are in $folder/answer_0.txt, $folder/answer_1.txt, ...; $failed of ${#questions[@]} failed."
exit $((failed > 0))
