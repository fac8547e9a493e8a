# shellcheck shell=bash disable=SC2034
# What test/run.sh and deploy/up.sh share, to be sourced: the Debian packages that Weir needs, and how
# a script says what it is doing. Needs bash and nothing else.

# What the program is built from.
build_packages=(
  cmake ninja-build g++ ccache protobuf-compiler
  libcaf-dev libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev librocksdb-dev libprotobuf-dev
  libspdlog-dev libfmt-dev libyaml-cpp-dev libcli11-dev libssl-dev libsystemd-dev libexpected-dev
  libxxhash-dev libhowardhinnant-date-dev prometheus-cpp-dev
)
# CMakeLists.txt looks for GoogleTest whatever is built.
build_packages+=(libgtest-dev libgmock-dev)
# What its tests need as well.
test_packages=(git curl clang-format libbenchmark-dev libgmp-dev spin)
# What deploy/up.sh needs as well.
local_cluster_packages=(curl)

progress_interval_s=15

# say WORDS...: one line with the seconds since the script began.
say() { printf '==> [%3d s] %s\n' "$SECONDS" "$*"; }

# fail WORDS...: says so on stderr and ends the script.
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# quietly LOG COMMAND...: runs COMMAND with its output in LOG, showing the newest line now and then; all
# of it when COMMAND fails.
quietly() {
  local log=$1 last=$SECONDS line
  shift
  : >"$log"
  if "$@" 2>&1 | while IFS= read -r line; do
    printf '%s\n' "$line"
    if ((SECONDS - last >= progress_interval_s)); then
      last=$SECONDS
      printf '             %.100s\n' "$line" >&3
    fi
  done 3>&1 >"$log"; then
    return 0
  fi
  cat "$log" >&2
  return 1
}

# missing_packages NAME...: prints those that dpkg does not know as installed.
missing_packages() {
  local installed name
  # dpkg-query fails when it knows one of them not at all, and prints the others.
  installed=$({ dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } |
    sed -n 's/^installed //p')
  for name in "$@"; do
    grep -qxF -- "$name" <<<"$installed" || printf '%s\n' "$name"
  done
}

# need_packages LOG NAME...: installs what is missing, as root or through sudo; asks no server when
# nothing is.
need_packages() {
  local log=$1 missing as_root=()
  shift
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no Debian package manager here; going on as if all packages were there"
    return 0
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  say "installing ${#missing[@]} missing packages: ${missing[*]}"
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail "not root, and no sudo; run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  quietly "$log" "${apt[@]}" update || fail "apt-get update failed (above; kept in $log)"
  quietly "$log" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
    fail "apt-get install failed (above; kept in $log)"
}

# configure LOG PRESET: makes build/PRESET, anew when the tree has moved since.
configure() {
  local log=$1 preset=$2 cache=build/$2/CMakeCache.txt fresh=()
  if [[ -e $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache"; then
    fresh=(--fresh)
  fi
  quietly "$log" cmake --preset "$preset" "${fresh[@]}" ||
    fail "cmake cannot configure preset $preset (above; kept in $log)"
}
