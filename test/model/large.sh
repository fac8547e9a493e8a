#!/usr/bin/env bash
# Verifies the large configurations one after the other, at low priority, and prints README.md's table.
# Takes up to 2 minutes and 1 GiB for each; what is not visited by then is said.
#
#   large.sh [WORK_DIRECTORY]      (default: build/spin-large)
#
# Bitstate search: a state is two bits of a 512 MiB table, so some are taken for visited that were not; with
# a hash factor above 100 they are few. The order of the search is drawn from a fixed seed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${1:-$here/../../build/spin-large}
minutes=2
mkdir -p "$work"
work=$(cd "$work" && pwd)

configurations=(
  'pass register LATE=1 DEATHS=1 GRANTS=3'
  'pass register LATE=1 DEATHS=2 GRANTS=4 EPOCHS=4 K=2'
  'pass lease REQUESTS=3 SLOTS=2 CAPACITY=2 TAKEOVERS=2'
  'pass amnesia WIPES=2 EPOCHS=4 REVERSE T_REVERSE'
  'pass amnesia WIPES=2 EPOCHS=4 K=2 LATE=1'
  'pass amnesia WIPES=1 EPOCHS=4 FRESH=1 LATE=1'
  'pass joint EPOCHS=3 K=2 LATE=1'
  'pass moved CAPACITY=4 TAKEOVERS=8'
)

# value PATTERN FILE: the first number after the pattern.
value() { sed -nE "s/.*$1[^0-9]*([0-9.e+]+).*/\1/p" "$2" | head -1; }

failed=0
echo '| model and definitions | verdict | states | search | seconds |'
echo '|---|---|---|---|---|'
for configuration in "${configurations[@]}"; do
  read -r expected model definitions <<<"$configuration"
  read -ra names <<<"$definitions"
  flags=("${names[@]/#/-D}")
  # The order is random unless a configuration fixes it.
  order=(-DT_RAND -DP_RAND)
  [[ $definitions != *REVERSE* ]] || order=()
  directory=$work/$model
  rm -rf "$directory"
  mkdir -p "$directory"
  (
    cd "$directory"
    spin "${flags[@]}" -a "$here/$model.pml" >spin.log
    gcc -O2 -w -DSAFETY -DNOCLAIM -DBITSTATE "${order[@]}" "${flags[@]}" -o pan pan.c
    began=$SECONDS
    nice -n 15 ./pan -E -m20000 -w32 -k2 "-Q$minutes" >pan.log 2>&1 || true
    echo $((SECONDS - began)) >seconds
  )
  log=$directory/pan.log
  search="whole, hash factor $(value 'hash factor:' "$log")"
  if grep -q 'assertion violated' "$log"; then
    verdict=fail search='until found'
  elif grep -q 'errors: 0' "$log"; then
    verdict=pass
    if grep -q 'not completed' "$log"; then search="$minutes minutes of it"; fi
  else
    verdict=error
  fi
  if [[ $verdict != "$expected" ]]; then failed=1 verdict="**$verdict**, must $expected"; fi
  states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' "$log" | tail -1)
  echo "| \`$model $definitions\` | $verdict | $states | $search | $(cat "$directory/seconds") |"
done
exit "$failed"
