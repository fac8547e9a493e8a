#!/usr/bin/env bash
# mutants.sh WEIR_SIM [PART PARTS]: each rule that can be broken is found by the checker, in the
# scenario and within the seeds that the table of README.md names; all of them are in the table.
# `assertion`: one of the product's own stops the run.
set -euo pipefail

simulator=$1 part=${2:-0} parts=${3:-1}
table=$(dirname "$0")/README.md
failed=0 row=0 rows=()

while IFS='|' read -r _ rule mutant checker scenario seeds _; do
  read -r mutant <<<"${mutant//\`/}"
  read -r checker <<<"$checker"
  read -r scenario <<<"${scenario//\`/}"
  read -r seeds <<<"$seeds"
  rows+=("$mutant")
  ((row++ % parts == part)) || continue
  output=$("$simulator" --mutant "$mutant" --scenario "$scenario" --seeds "1-$seeds" --first 2>&1 || true)
  if [[ $checker == assertion ]]; then wanted='assertion failed'; else wanted="VIOLATED $checker at"; fi
  if grep -q "$wanted" <<<"$output"; then
    echo "found: $mutant ($rule) by $checker"
  else
    echo "NOT FOUND: $mutant by $checker in seeds 1-$seeds of $scenario"
    failed=1
  fi
done < <(sed -n '/^| rule | mutant/,/^$/p' "$table" | tail -n +3 | grep '^|')

for mutant in $("$simulator" --list-mutants | awk '{ print $1 }'); do
  [[ " ${rows[*]} " == *" $mutant "* ]] || { echo "$mutant has no row in $table" && failed=1; }
done
((${#rows[@]} > 0)) || { echo "$table has no rows" && failed=1; }
exit "$failed"
