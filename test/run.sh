#!/usr/bin/env bash
# Installs what is missing, checks the format, builds a preset and runs its tests. The last line is
# `N passed, N failed`. Works from any directory and in any clone; can be repeated at no cost.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/common.sh
source deploy/common.sh

usage() {
  cat <<'USAGE'
usage: test/run.sh [--preset dev|asan|tsan|release] [CTEST ARGUMENT]...

  test/run.sh                   every test
  test/run.sh -L sim            the tests with a label (unit actor sim integration chaos tidy ...)
  test/run.sh -R Ledger         the tests whose name matches
  test/run.sh --preset asan     the same under AddressSanitizer (also: WEIR_PRESET=asan)

Exit status 0 only when at least one test ran and none failed. WEIR_JOBS sets how many run at a time.
USAGE
}

preset=${WEIR_PRESET:-dev}
jobs=${WEIR_JOBS:-$(nproc)}
ctest_arguments=()
while (($# > 0)); do
  case $1 in
    --preset)
      (($# > 1)) || fail "--preset needs a name"
      preset=$2
      shift
      ;;
    --preset=*) preset=${1#*=} ;;
    -h | --help) usage && exit 0 ;;
    *) ctest_arguments+=("$1") ;;
  esac
  shift
done
[[ $preset =~ ^[a-z]+$ ]] || fail "no preset is called '$preset'"

build=build/$preset
mkdir -p "$build"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

# count_of STATUS: how many tests ended so in the report that ctest wrote.
count_of() { grep -c "^[[:space:]]*<testcase .* status=\"$1\"" "$build/results.xml" || true; }

say "looking for missing packages"
need_packages "$build/packages.log" "${build_packages[@]}" "${test_packages[@]}"

say "checking the format (clang-format)"
command -v clang-format >/dev/null || fail "clang-format is not installed"
if ! complaints=$(find src actors regions test -type f \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 -r clang-format --dry-run -Werror 2>&1); then
  mapfile -t unformatted < <(sed -n 's/^\([^ ]*\):[0-9]*:[0-9]*: error: code should be.*/\1/p' <<<"$complaints" | sort -u)
  ((${#unformatted[@]} > 0)) || fail "clang-format says: $complaints"
  fail "not formatted; mend with: clang-format -i ${unformatted[*]}"
fi

say "configuring preset $preset"
configure "$build/configure.log" "$preset"
say "building preset $preset (output in $build/build.log)"
quietly "$build/build.log" cmake --build "$build" -j "$jobs" || fail "the build failed (above)"

say "running tests"
: >"$build/results.xml"
status=0
ctest --test-dir "$build" -j "$jobs" --output-on-failure --output-junit results.xml \
  "${ctest_arguments[@]}" || status=$?

# A test whose program is gone is `notrun` like one that skips itself, and is a failure.
passed=$(count_of run) failed=$(count_of fail) unrun=$(count_of notrun) disabled=$(count_of disabled)
skipped=$(grep -c '<skipped message="SKIP_' "$build/results.xml" || true)
failed=$((failed + unrun - skipped))
say "done; skipped $skipped, disabled $disabled"
if ((passed + failed == 0)); then
  echo "error: no test ran" >&2
  status=1
fi
if ((failed > 0 && status == 0)); then status=1; fi
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$status"
