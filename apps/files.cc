#include "files.h"

#include <coppice/tools.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "terminal.h"

namespace coppice::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostText = std::size_t{256} << 20;  // bytes; /dev/zero has no end
constexpr std::size_t kShownModels = 8;                    // of those a name might mean

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, Close>;

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// 2: the file's name (with or without .gguf) or the model's; 1: a part of one of them; 0: neither.
int likeness(const FoundModel& model, const std::string& wanted) {
  const fs::path path(model.path);
  const std::string names[] = {lower(path.filename().string()), lower(path.stem().string()),
                               lower(model.name)};
  int best = 0;
  for (const std::string& name : names) {
    if (name == wanted) return 2;
    if (name.find(wanted) != std::string::npos) best = 1;
  }
  return best;
}

// 0, or the errno of what failed.
int write_whole(const std::string& path, std::string_view text) {
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) return errno;
  const bool good = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  return good && std::fflush(file.get()) == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  File file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  const char* shown = path == "-" ? "stdin" : path.c_str();
  if (!file) return fail(fmt::format("cannot read {}: {}", shown, std::strerror(errno)));
  std::string text;
  char part[1 << 16];
  while (const std::size_t got = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, got);
    if (text.size() > kMostText)
      return fail(fmt::format("cannot read {}: it is longer than {} MB", shown, kMostText >> 20));
  }
  if (std::ferror(file.get()) != 0)
    return fail(fmt::format("cannot read {}: {}", shown, std::strerror(errno)));
  return text;
}

Status write_text(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const bool device = fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
  fs::path target = fs::canonical(path, ignored);  // a symbolic link stays one
  if (ignored) target = path;
  const std::string aside = device ? path : fmt::format("{}.{}.part", target.string(), ::getpid());
  int error = write_whole(aside, text);
  if (error == 0 && !device && std::rename(aside.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  if (!device) std::remove(aside.c_str());
  return fail(fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

Status check_output(const std::string& path) {
  std::error_code ignored;
  if (path.empty()) return fail("an output file is needed; its name is empty");
  if (fs::is_directory(path, ignored)) return fail(fmt::format("cannot write {}: it is a folder", path));
  const fs::path folder = folder_of(path);
  if (!fs::is_directory(folder, ignored))
    return fail(fmt::format("cannot write {}: there is no folder {}", path, folder.string()));
  const std::string target = fs::exists(path, ignored) ? path : folder.string();
  if (::access(target.c_str(), W_OK) != 0)
    return fail(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return {};
}

Status keep_inputs(const std::string& output, const std::vector<std::string>& read) {
  std::error_code ignored;
  for (const std::string& input : read) {
    if (fs::is_regular_file(output, ignored) && fs::equivalent(input, output, ignored))
      return fail(fmt::format("the output would replace {}, which is read; name another output", input));
  }
  return {};
}

Result<std::string> find_model_file(const std::string& name) {
  std::error_code ignored;
  if (name.empty()) return fail("the name of the model file is empty; name a GGUF file");
  if (fs::exists(name, ignored)) return name;
  if (name.find('/') != std::string::npos) return fail(fmt::format("{}: there is no such file", name));
  const std::string wanted = lower(name);
  const std::vector<FoundModel> found = find_models();
  std::vector<std::string> best;
  int best_likeness = 1;
  for (const FoundModel& model : found) {
    const int like = likeness(model, wanted);
    if (like < best_likeness) continue;
    if (like > best_likeness) best.clear();
    best_likeness = like;
    best.push_back(model.path);
  }
  if (best.empty()) {
    return fail(
        fmt::format("there is no file {0}, and none of the {1} models on this machine has {0} in its name "
                    "(coppice models lists them)",
                    name, found.size()));
  }
  if (best.size() > 1) {
    std::string list;
    for (std::size_t i = 0; i < std::min(best.size(), kShownModels); ++i)
      list += (i == 0 ? "" : ", ") + best[i];
    if (best.size() > kShownModels) list += ", ...";
    return fail(fmt::format("{} may be any of {} models, say more of the name: {}", name, best.size(), list));
  }
  note("using {}\n", best.front());
  return best.front();
}

}  // namespace coppice::app
