// Files that a person names on the command line: prompts and texts to read, reports to write, models to find.
#pragma once

#include <coppice/error.h>

#include <string>
#include <string_view>
#include <vector>

namespace coppice::app {

// The text of a file, or of stdin ("-").
Result<std::string> read_text(const std::string& path);

// Writes aside and renames: nobody ever sees half a file. Devices and pipes are written as they are.
Status write_text(const std::string& path, std::string_view text);

// Before long work: an output that could not be written is said now and not in an hour. Creates nothing.
Status check_output(const std::string& path);

// An output that would replace what the command reads is refused, and a model where no model is written.
Status keep_inputs(const std::string& output, const std::vector<std::string>& read);

// The file itself, or the one file of `coppice models` that has this name or a part of it; says which it
// chose.
Result<std::string> find_model_file(const std::string& name);

}  // namespace coppice::app
