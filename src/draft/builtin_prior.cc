#include "base/check.h"
#include "draft/prior.h"

namespace coppice::core {
namespace {

// Made by tools/make_models.sh; the same text as models/smollm2-135m-instruct.mixer.
constexpr const char* kText =
#include "draft/builtin_prior.inc"
    ;

}  // namespace

const MixerPrior& builtin_prior() {
  static const MixerPrior prior = [] {
    auto parsed = parse_prior(kText, "the built-in prior");
    COPPICE_CHECK(parsed.has_value());
    return std::move(*parsed);
  }();
  return prior;
}

}  // namespace coppice::core
