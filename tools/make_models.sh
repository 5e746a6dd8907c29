#!/usr/bin/env bash
# Makes what models/ holds for one model out of text that it wrote itself:
#   tools/make_models.sh MODEL.gguf TEXTS.jsonl [NAME]
# NAME.ngram (only tokens from each text's `start` on are counted), NAME.mixer, and the built-in prior.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$1 texts=$2 name=${3:-smollm2-135m-instruct}
build=${COPPICE_BUILD:-build/dev}
"$build/tools/coppice_fit_mixer" "$texts" "models/$name.mixer" --ngram "models/$name.ngram" \
  --vocabulary "$model" --provenance "text written by $name itself, generated tokens only"
if [[ $name == smollm2-135m-instruct ]]; then
  { echo 'R"mixer('"$(cat "models/$name.mixer")"; echo ')mixer"'; } >src/draft/builtin_prior.inc
fi
