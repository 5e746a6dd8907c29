#!/usr/bin/env bash
# Makes what models/ holds for one model out of text that it wrote itself:
#   tools/make_models.sh MODEL.gguf TEXTS... [-- KEYED.jsonl]
# NAME.ngram (only tokens from each text's `start` on are counted), NAME.mixer, and the built-in prior. TEXTS are token files
# or corpus folders. KEYED.jsonl are sampled texts whose noise is known (a corpus has them itself); it is written first, after
# some of the prompts, if it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$1 name=smollm2-135m-instruct keyed=build/keyed.jsonl
shift
texts=()
while (($#)) && [[ $1 != -- ]]; do texts+=("$1"); shift; done
[[ ${1:-} == -- ]] && keyed=$2
build=${COPPICE_BUILD:-build/dev}
if [[ ! -e $keyed ]]; then
  "$build/tools/coppice_write_texts" "$model" "${texts[0]}" "$keyed.part" --limit 320 --temperature 1 --top-k 50 --seed 7 --at-once 16
  mv "$keyed.part" "$keyed"
fi
"$build/apps/coppice" train ngram -m "$model" -o "models/$name.ngram" --plot build/ngram.svg "${texts[@]}"
for mix in lookup "ngram(models/$name.ngram)" "lookup | ngram(models/$name.ngram)"; do
  "$build/apps/coppice" train mixer -m "$model" --texts "${texts[@]}" "$keyed" --drafters "$mix" --recount -o "models/$name.mixer"
done
{ echo 'R"mixer('"$(cat "models/$name.mixer")"; echo ')mixer"'; } >src/draft/builtin_prior.inc
