#!/usr/bin/env bash
# Verifies one configuration of one Spin model. ctest calls it (CMakeLists.txt); large.sh too.
#
#   run.sh pass|fail WORK_DIRECTORY MODEL [-DNAME[=VALUE]]...
#
# `pass`: every state was visited and no assertion fails. `fail`: an assertion is violated, as it must be
# when a rule is removed. The definitions go to the model and to the verifier (REVERSE and T_REVERSE change
# only the order of its search). Environment: MODEL_SECONDS (300), MODEL_MEBIBYTES (3000), MODEL_CFLAGS and
# MODEL_ARGUMENTS for the verifier.
set -euo pipefail
expected=$1 work=$2 model=$3
shift 3
source_file=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$model.pml
rm -rf "$work"
mkdir -p "$work"
cd "$work"

spin "$@" -a "$source_file" >spin.log || { cat spin.log; exit 2; }
# Searches for a violation are short, so the compiler is what takes time.
[[ $expected == pass ]] && optimize=-O1 || optimize=-O0
# shellcheck disable=SC2086
gcc $optimize -w -DSAFETY -DNOCLAIM -DMEMLIM="${MODEL_MEBIBYTES:-3000}" ${MODEL_CFLAGS:-} "$@" -o pan pan.c
# -E: an owner may stop anywhere, so a state without a successor is no error.
# shellcheck disable=SC2086
timeout "${MODEL_SECONDS:-300}" ./pan -E -m100000 -w22 ${MODEL_ARGUMENTS:-} >pan.log 2>&1 || true

grep -E 'assertion violated|errors:|states, stored|transitions|not completed|depth too small|limit|elapsed' pan.log || true
if ! grep -q 'errors:' pan.log; then
  echo "error: the search came to no end; the last lines of $work/pan.log:"
  tail -3 pan.log
  exit 2
fi
if grep -q 'assertion violated' pan.log; then
  verdict=fail
elif grep -Eq 'errors: 0$' pan.log && ! grep -Eq 'not completed|depth too small|memory limit' pan.log; then
  verdict=pass
else
  echo "error: the search is incomplete, see $work/pan.log"
  exit 2
fi
if [[ $verdict != "$expected" ]]; then
  echo "error: expected to $expected, but it does $verdict"
  if [[ $verdict == fail ]]; then
    echo "the end of the schedule (all of it: cd $work && spin -t -p -g -l $* $source_file):"
    cp "$model".pml.trail "$work/trail" 2>/dev/null || true
    spin -t -p -g -l -k "$model".pml.trail "$@" "$source_file" | tail -60
  fi
  exit 1
fi
echo "ok: $model $* does $verdict, as it must"
rm -f pan pan.[bchmpt] ./*.trail
