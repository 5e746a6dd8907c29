#!/usr/bin/env bash
# Makes what models/ holds for one model out of text that it wrote itself, but for what is trained (the head, the draft):
#   tools/make_models.sh MODEL.gguf TEXTS... -- FRESH...
# NAME.ngram is counted on TEXTS (token files or corpus folders; only tokens from each text's `start` on). The mixer is
# fitted on FRESH: texts of the same kinds with other prompts, on which no n-gram was counted and no head or draft trained,
# or it believes these too much; half of them greedy, and sampled ones whose noise is known (a corpus has both; some 200,000
# tokens are enough). NAME.mixer gets a section for every mix of what lies in models/: NAME.head.gguf, NAME.draft.gguf and
# NAME.draft.ngram (n-grams of the draft) are optional. It is the built-in prior too.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$1 name=models/smollm2-135m-instruct
shift
texts=()
while (($#)) && [[ $1 != -- ]]; do texts+=("$1"); shift; done
if ((${#texts[@]} == 0 || $# < 2)); then sed -n 3p "$0" >&2; exit 2; fi
shift
coppice=${COPPICE_BUILD:-build/release}/apps/coppice
"$coppice" train ngram -m "$model" -o "$name.ngram" --plot build/ngram.svg "${texts[@]}"
cheap="lookup | ngram($name.ngram)"
mixes=(lookup "ngram($name.ngram)" "$cheap")
neural=()
[[ -e $name.head.gguf ]] && neural+=("head($name.head.gguf)")
if [[ -e $name.draft.ngram ]]; then
  neural+=("stage($name.draft.gguf, ngram($name.draft.ngram))") # the prior of model(DRAFT) as well: it says the same
elif [[ -e $name.draft.gguf ]]; then
  neural+=("model($name.draft.gguf)")
fi
for drafter in "${neural[@]}"; do mixes+=("$drafter" "$drafter | lookup" "$drafter | $cheap"); done
((${#neural[@]} == 2)) && mixes+=("${neural[0]} | ${neural[1]} | $cheap")
rm -f build/new.mixer
for mix in "${mixes[@]}"; do
  "$coppice" train mixer -m "$model" --texts "$@" --drafters "$mix" -o build/new.mixer
done
mv build/new.mixer "$name.mixer"
{ echo 'R"mixer('"$(cat "$name.mixer")"; echo ')mixer"'; } >src/draft/builtin_prior.inc
