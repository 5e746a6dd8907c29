// Drafts as GGUF files: what `coppice train draft` writes and the model room runs. docs/file-formats.md says
// what the keys and tensors are. A draft of one width is an ordinary llama.
#pragma once

#include <coppice/error.h>

#include <memory>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "train/draft_model.h"

namespace coppice::core::train {

// A value to be noted under "coppice.train.<name>".
struct DraftNote {
  std::string name, value;
};

struct DraftFileOptions {
  std::string blocks = "Q8_0";     // format of the blocks' matrices
  std::string head = "Q8_0";       // of the head
  std::string embedding = "Q4_0";  // of the embedding, which is only looked up
  std::vector<DraftNote> notes;    // where the draft comes from
};

// Adds all keys and tensors of the file. The tokenizer and the rest of what a draft shares with its target is
// copied from `target`, which must outlive the writer. Errors name the option.
Status add_draft(const SlimDraft& draft, const gguf::File& target, const DraftFileOptions& options,
                 gguf::Writer& writer);
// The same as a file; nothing is left of one that is not whole.
Status write_draft(const SlimDraft& draft, const gguf::File& target, const DraftFileOptions& options,
                   const std::string& path);
// The draft that such a file holds, its weights as they come out of their formats. A llama without the keys
// of a slimmable one is a draft of one width; its head may be trimmed or not.
Result<std::shared_ptr<SlimDraft>> read_draft(const gguf::File& file);

}  // namespace coppice::core::train
