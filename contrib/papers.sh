#!/usr/bin/env bash
# Makes a bundle of each of the six papers' experiments, for a release: `make release` calls it. They are at
# the quick scale, minutes and not hours; all but one without captures, which whoever verifies one makes again.
set -euo pipefail
out=$(realpath -m "${1:?usage: contrib/papers.sh FOLDER [NAME]}")
mkdir -p "$out"
testbed=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../.venv/bin/testbed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

paper() { # NAME TITLE EXPERIMENT…
    local name=$1 title=$2 experiment begun=$SECONDS folders=()
    shift 2
    [[ -z $only || $only == "$name" ]] || return 0
    for experiment; do
        # trials that an earlier paper has are not run again; what a machine lacks is unsupported, and stays so
        "$testbed" run "$experiment" --quick --engine guest --out "results/$experiment" >"$experiment.log" 2>&1 ||
            tail -n 3 "$experiment.log" >&2
        folders+=("results/$experiment")
    done
    "$testbed" bundle "${folders[@]}" --out "$out/$name.zip" --captures "$captures" --title "$title" | grep -E '^(bundle|fingerprint)'
    echo "$name: $((SECONDS - begun)) s"
}

only=${2-} captures=drop
paper fall-floyd 'Fall and Floyd 1996, at the quick scale' fall-floyd
paper guo-yuan-sheng 'Guo, Yuan and Sheng, at the quick scale' router-bottleneck router-fairness
paper kapre-saxena 'Kapre and Saxena, at the quick scale' dumbbell-load dumbbell-pairs dumbbell-queues
paper joshi-hattikar 'Joshi and Hattikar, at the quick scale' dumbbell-load dumbbell-pairs dumbbell-queues dumbbell-phase
paper parvez-mahanti-williamson 'Parvez, Mahanti and Williamson, at the quick scale' newreno-models newreno-background
# QUIC's ciphertext may differ elsewhere, so that captures are needed to compare times and lengths;
# without video-players: a browser's packets are not the same on another day (docs/determinism.md)
captures=keep
paper rajore-gupta-sikka-jain 'Rajore, Gupta, Sikka and Jain, at the quick scale' video-access
