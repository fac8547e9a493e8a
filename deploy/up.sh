#!/usr/bin/env bash
# Installs what is missing, builds a release, starts a local cluster of five nodes in two regions,
# proves that a limit holds over all of them, and stays up until Ctrl-C. Can be repeated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/common.sh
source deploy/common.sh

usage() {
  cat <<'USAGE'
usage: deploy/up.sh [--check]

  deploy/up.sh           proves the limit, prints URLs and things to try, stays until Ctrl-C
  deploy/up.sh --check   proves the limit and stops; exit status 0 only if the proof held

WEIR_JOBS sets how many compilers run at a time.
USAGE
}

check=no
case ${1-} in
  "") ;;
  --check) check=yes ;;
  -h | --help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
esac
(($# <= 1)) || { usage >&2 && exit 2; }

build=build/release
weir=$PWD/$build/weir
policy=$PWD/deploy/samples/local/policy.yaml
ready_timeout_s=60
stop_timeout_s=15
requests=500
limit=100

mkdir -p "$build"
work=$(mktemp -d)
cluster_pid=
node_pids=()

# is_ours PID: whether it still is a process of this build, and not another one with a used number.
is_ours() { [[ "$(readlink "/proc/$1/exe" 2>/dev/null)" == "$weir"* ]]; }

any_alive() {
  local pid
  for pid in $cluster_pid "${node_pids[@]}"; do
    if is_ours "$pid"; then return 0; fi
  done
  return 1
}

stop_cluster() {
  local status=$? pid deadline
  trap - EXIT
  trap '' INT TERM HUP
  if [[ -n $cluster_pid ]] && any_alive; then
    say "stopping the cluster"
    if is_ours "$cluster_pid"; then
      kill -TERM "$cluster_pid" 2>/dev/null || true
    else
      for pid in "${node_pids[@]}"; do
        if is_ours "$pid"; then kill -TERM "$pid" 2>/dev/null || true; fi
      done
    fi
    deadline=$((SECONDS + stop_timeout_s))
    while any_alive && ((SECONDS < deadline)); do sleep 0.1; done
    for pid in $cluster_pid "${node_pids[@]}"; do
      if is_ours "$pid"; then
        echo "process $pid did not stop in $stop_timeout_s s; killing it" >&2
        kill -KILL "$pid" 2>/dev/null || true
      fi
    done
  fi
  rm -rf "$work"
  exit "$status"
}
trap stop_cluster EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# field NAME: that member of each node of the cluster's ready line, one a line.
field() { tr '{' '\n' <"$work/ready.json" | sed -n "s/.*\"$1\"[[:space:]]*:[[:space:]]*\"\{0,1\}\([^\",}]*\).*/\1/p"; }

# start_cluster: returns when the cluster has printed its ready line, or ends the script.
start_cluster() {
  local line deadline=$((SECONDS + ready_timeout_s))
  coproc cluster { exec "$weir" cluster up --regions 2 --nodes 5 --policy "$policy" --json 2>"$build/cluster.log"; }
  # bash forgets cluster and cluster_PID when the process ends.
  cluster_pid=${cluster_PID:-}
  exec 4</dev/null
  if [[ -n ${cluster[0]:-} ]]; then exec 4<&"${cluster[0]}"; fi
  while ((SECONDS < deadline)); do
    if ! IFS= read -r -t $((deadline - SECONDS)) -u 4 line; then break; fi
    if [[ $line == *'"nodes"'* ]]; then
      printf '%s\n' "$line" >"$work/ready.json"
      cat <&4 >/dev/null & # the rest is not read; a full pipe would stop the cluster
      return 0
    fi
  done
  tail -n 40 "$build/cluster.log" >&2
  fail "the cluster was not ready (above: the end of $build/cluster.log)"
}

# burst CUSTOMER ROUTE: all the requests at once, dealt out over the nodes in turn. Sets `allowed`,
# `denied` and `other`, and leaves the status codes in $work/codes.
burst() {
  local i config=$work/burst.curl
  {
    printf 'header = "Content-Type: application/json"\n'
    printf 'data = "{\\"customer\\":\\"%s\\",\\"attributes\\":{\\"route\\":\\"%s\\"}}"\n' "$1" "$2"
    for ((i = 0; i < requests; ++i)); do
      printf 'url = "http://%s/v1/check"\noutput = "/dev/null"\n' "${http[i % ${#http[@]}]}"
    done
  } >"$config"
  # A status of curl's own (a refused connection, say) shows in the codes as 000.
  curl --disable --silent --no-progress-meter --globoff --noproxy '*' --max-time 30 --parallel --parallel-max 100 \
    --write-out '%{http_code}\n' --config "$config" >"$work/codes" || true
  allowed=$(grep -c '^200$' "$work/codes" || true)
  denied=$(grep -c '^429$' "$work/codes" || true)
  other=$((requests - allowed - denied))
}

# complain: what the burst answered besides 200 and 429.
complain() {
  ((other == 0)) && return
  echo "  $other requests got no verdict; status codes (000: no answer):" >&2
  sort "$work/codes" | uniq -c >&2
}

# prove: the reason why Weir exists, in two lines. Fails when the numbers are others.
prove() {
  local customer held=0
  customer=proof-$(date +%s)-$$
  say "proof: $requests requests of one customer with a limit of $limit, over ${#http[@]} nodes"
  burst "$customer" proof/local
  echo "local buckets: $allowed allowed"
  complain
  ((allowed == requests)) || held=1
  burst "$customer" proof/weir
  echo "Weir: $allowed allowed, $denied denied"
  complain
  ((allowed == limit && denied == requests - limit)) || held=1
  return "$held"
}

print_nodes() {
  local i
  printf '\n  %-8s %-8s %-28s %s\n' node region 'checks' 'admin'
  for i in "${!http[@]}"; do
    printf '  %-8s %-8s %-28s %s\n' "${names[i]}" "${regions[i]}" "http://${http[i]}" "http://${admin[i]}"
  done
}

print_things_to_try() {
  local first=${http[0]} last=${http[-1]}
  cat <<TRY

  One check, answered with what is left:
    curl -i http://$first/v1/check -H 'Content-Type: application/json' -d '{"customer":"ada","attributes":{"route":"GET /v1/items"}}'
  The same customer at another node, in the other region:
    curl 'http://$last/v1/check?customer=ada&route=GET%20/v1/items'
  A strict limit, five a minute (the sixth is denied):
    for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\n' 'http://$last/v1/check?customer=ada&route=POST%20/login&ip=203.0.113.9'; done
  Up to a thousand checks at once:
    curl http://$first/v1/checks -H 'Content-Type: application/json' -d '{"checks":[{"customer":"ada","attributes":{"route":"GET /v1/a"}},{"customer":"acme","attributes":{"route":"GET /v1/a"},"cost":5}]}'
  What is used and what remains, consuming nothing:
    curl 'http://$first/v1/usage?customer=ada'
  Which limits match and why:
    curl 'http://${admin[0]}/v1/explain?customer=ada&route=GET%20/v1/items'
  Which node owns a customer:
    curl http://${admin[0]}/v1/owners/ada
  The cluster as this node sees it, and its metrics:
    curl http://${admin[0]}/v1/status
    curl http://${admin[0]}/metrics

  The limits are in deploy/samples/local/policy.yaml; the log is in $build/cluster.log.
TRY
}

say "looking for missing packages"
need_packages "$build/packages.log" "${build_packages[@]}" "${local_cluster_packages[@]}"
say "configuring a release"
configure "$build/configure.log" release
say "building $build/weir (output in $build/build.log)"
quietly "$build/build.log" cmake --build "$build" --target weir -j "${WEIR_JOBS:-$(nproc)}" ||
  fail "the build failed (above)"
[[ -x $weir ]] || fail "the build made no $build/weir"

say "starting a local cluster: two regions, five nodes"
start_cluster
mapfile -t names < <(field name)
mapfile -t regions < <(field region)
mapfile -t http < <(field http)
mapfile -t admin < <(field admin)
mapfile -t node_pids < <(field pid)
((${#http[@]} == 5 && ${#admin[@]} == 5)) || fail "not a ready line of five nodes: $(cat "$work/ready.json")"
say "the cluster is ready"

held=0
prove || held=$?
if ((held == 0)); then
  say "the proof held"
else
  echo "the proof did NOT hold: expected $requests allowed, then $limit allowed and $((requests - limit)) denied" >&2
fi
if [[ $check == yes ]]; then exit "$held"; fi

print_nodes
print_things_to_try
trap 'exit 0' INT
say "up; stop it with Ctrl-C"
wait "$cluster_pid" || true
fail "the cluster has stopped by itself; see $build/cluster.log"
