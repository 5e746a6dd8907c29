// For tests: how often this program asked for memory while `counting` (operator new is replaced in
// cheap_drafters_test.cc).
#pragma once

namespace coppice::core::testing {
extern bool counting;
extern int allocations;
}  // namespace coppice::core::testing
