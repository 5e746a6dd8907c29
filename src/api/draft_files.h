// Where drafters get their files from.
#pragma once

#include "base/thread_pool.h"
#include "draft/registry.h"

namespace coppice {

// Draft models with the same threads as the target, each file loaded once. `pool` must outlive them.
void add_draft_files(core::DraftEnvironment& environment, core::ThreadPool& pool);

}  // namespace coppice
