#!/usr/bin/env bash
# Makes what models/ holds for one model out of text that it wrote itself:
#   tools/make_models.sh MODEL.gguf TEXTS.jsonl [KEYED.jsonl]
# NAME.ngram (only tokens from each text's `start` on are counted), NAME.mixer, and the built-in prior.
# KEYED.jsonl are sampled texts whose noise is known; it is written first, after 120 of the prompts, if it is
# not there.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$1 texts=$2 keyed=${3:-build/keyed.jsonl} name=smollm2-135m-instruct
build=${COPPICE_BUILD:-build/dev}
[[ -e $keyed ]] || "$build/tools/coppice_write_texts" "$model" "$texts" "$keyed" --limit 120 --temperature 1 \
  --top-k 50 --seed 7
"$build/tools/coppice_fit_mixer" "$texts" "models/$name.mixer" --keyed "$keyed" --ngram "models/$name.ngram" \
  --vocabulary "$model" --provenance "text written by $name itself, generated tokens only"
{ echo 'R"mixer('"$(cat "models/$name.mixer")"; echo ')mixer"'; } >src/draft/builtin_prior.inc
