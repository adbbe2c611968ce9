#!/usr/bin/env bash
# With keys: reviews the pull request as text. Nothing of it is checked out, and nothing of it is run. Texts of models go
# into files, never to the log, where a line could be a command of the runner.
set -euo pipefail
trap 'exit 2' ERR # whatever fails here has reviewed nothing
collected="$RUNNER_TEMP/massgen-review" report="$RUNNER_TEMP/massgen-report"
api="repos/$GITHUB_REPOSITORY"
mkdir -p "$report"

# GitHub says which pull request this run is about: the open one whose head is this commit of this branch of this
# repository. Its diff is asked for by that commit, so that a push meanwhile changes nothing.
mine='[.[] | select(.head.repo.full_name == env.HEAD_REPOSITORY and .head.ref == env.HEAD_BRANCH and .head.sha == env.HEAD_SHA)'
mine+=' | "\(.number) \(.base.sha)"] | join("\n")'
found="$(gh api --method GET "$api/pulls" -f state=open -f head="${HEAD_REPOSITORY%%/*}:$HEAD_BRANCH" -F per_page=100 --jq "$mine")"
if [ -z "$found" ]; then
    echo "No open pull request has the commit $HEAD_SHA, which this run is about, as its head: nothing is reviewed."
    exit 2
fi
if [ "$(wc -l <<< "$found")" -ne 1 ]; then
    echo "Pull requests $(cut -d ' ' -f 1 <<< "$found" | paste -sd ' ') have the commit $HEAD_SHA as their head, and this run is about one of them:" \
        "nothing is reviewed. Close all but one."
    exit 2
fi
read -r number base <<< "$found"
gh api "$api/compare/$base...$HEAD_SHA" -H "Accept: application/vnd.github.diff" > "$report/change.diff"

options=(--diff "$report/change.diff" --max-usd "$MAX_USD" --fail-on "$FAIL_ON" --no-logs)
[ -z "$CONFIG" ] || options+=(--config "$CONFIG")
[ -z "$MODELS" ] || options+=(--models "$MODELS")
if [ -f "$collected/evidence" ] && [ ! -L "$collected/evidence" ]; then
    tail -c 80000 "$collected/evidence" > "$report/evidence"
    options+=(--evidence "$report/evidence")
fi
cd "$report"
if [ "$DRY_RUN" = true ]; then
    massgen review --dry-run "${options[@]}" 2>&1 | tee -a "$GITHUB_STEP_SUMMARY"
    exit "${PIPESTATUS[0]}"
fi

# What we said before: only a comment that this workflow's own account has written counts.
ours='select(.user.login == "github-actions[bot]") | .body | rtrimstr("\n") | split("\n") | last | select(startswith("<!-- massgen-review "))'
gh api --paginate "$api/issues/$number/comments" --jq ".[] | $ours" | sed '/^[[:space:]]*$/d' | tail -n 1 > earlier.md
code=0
massgen review "${options[@]}" --previous earlier.md \
    --output-file report.md --output-file report.json --output-file report.sarif > /dev/null || code=$?
if [ ! -s report.json ]; then
    conclusion=action_required summary="Unclear: the review could not begin; the log of the job says why."
    jq -n --arg summary "$summary" '{output: {title: "unclear", $summary}}' > check.json
else
    # A check that is required takes `neutral` for passed.
    case "$code $(jq -r .verdict report.json)" in
        "0 pass") conclusion=success ;;
        1\ *) conclusion=failure ;;
        *) conclusion=action_required ;;
    esac
    cat report.md >> "$GITHUB_STEP_SUMMARY"
    if [ ! -s earlier.md ] || jq -e '[.gone[], (.findings[] | select(.status != "refuted" and (.said_before | not)))] != []' report.json > /dev/null; then
        # GitHub takes 65536 characters; the last line is what the next review has to know.
        room=$((65000 - $(tail -n 1 report.md | wc -c)))
        { head -n -1 report.md | head -c "$room"; echo; tail -n 1 report.md; } > comment.md
        gh api "$api/issues/$number/comments" -F body=@comment.md > /dev/null
    fi
    jq '{output: {title: .verdict, summary: "\(.findings | length) findings; the comment and the artifact have them.\(if .unclear == [] then "" else " Unclear: the summary of the job gives the reason." end)",
        annotations: [.change.files as $files | .findings[]
            | select(.status != "refuted" and .line != null and (.file | IN($files[])))
            | {path: .file, start_line: .line, end_line: .line, title: .title[:250],
               annotation_level: {blocker: "failure", major: "warning", minor: "notice"}[.severity],
               message: "\(.status): \(.detail)"[:60000]}][:50]}}' report.json > check.json
fi
jq --arg sha "$HEAD_SHA" --arg conclusion "$conclusion" \
    '. + {name: "massgen review", head_sha: $sha, status: "completed", $conclusion}' check.json |
    gh api "$api/check-runs" --input - > /dev/null
exit "$code"
