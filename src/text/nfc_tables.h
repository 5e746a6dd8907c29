// The data of nfc.cc, generated from Unicode's (nfc_tables.cc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace coppice::core {

struct NfcClass {
  char32_t code;
  std::uint8_t combining;  // Canonical_Combining_Class, not 0
};

// As a decomposition: first becomes second and third (0: second alone). As a composition: first and second
// become third.
struct NfcPair {
  char32_t first, second, third;
};

struct NfcRange {
  char32_t first, last;
};

extern const NfcClass kNfcClasses[];
extern const NfcPair kNfcDecompositions[], kNfcCompositions[];
extern const NfcRange kNfcLoud[];
extern const std::size_t kNfcClassesCount, kNfcDecompositionsCount, kNfcCompositionsCount, kNfcLoudCount;

}  // namespace coppice::core
