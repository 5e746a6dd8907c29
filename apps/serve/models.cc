#include "models.h"

#include <coppice/tools.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "errors.h"

namespace coppice::serve {
namespace {

constexpr double kRetrySeconds = 10;  // after a load that failed
constexpr double kRoomForBytes =
    1.1;  // memory of a model and its engine, in bytes of its file, before it is known
constexpr std::string_view kLatest = ":latest";

// Of what the header says and the file's time: a start must not read gigabytes for it.
std::uint64_t fnv(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

std::uint64_t room_for(std::uint64_t file_bytes) {
  return static_cast<std::uint64_t>(kRoomForBytes * static_cast<double>(file_bytes));
}

// What the lists of models say, from the file's header alone.
Result<ServedModel> describe(const std::string& name, const std::string& file) {
  auto text = inspect(file);
  if (!text) return tl::unexpected(text.error());
  const auto header = nlohmann::json::parse(*text, nullptr, false);
  const auto& keys = header["keys"];
  const auto architecture = keys.find("general.architecture");
  if (architecture == keys.end() || !architecture->is_string())
    return fail(fmt::format("{} says no architecture: it is no model that answers", file));
  ServedModel model;
  model.name = name;
  model.bytes = header["bytes"].get<std::uint64_t>();
  model.parameters = header["parameters"].get<std::uint64_t>();
  model.architecture = architecture->get<std::string>();
  struct stat info {};
  if (stat(file.c_str(), &info) == 0) model.created = info.st_mtime;
  model.hash = fmt::format("{:016x}", fnv(fmt::format("{} {}", *text, model.created)));
  // The format that most of its weights have.
  std::map<std::string, std::uint64_t> formats;
  for (const auto& tensor : header["tensors"])
    formats[tensor["format"].get<std::string>()] += tensor["bytes"].get<std::uint64_t>();
  for (const auto& [format, bytes] : formats)
    if (model.format.empty() || bytes > formats[model.format]) model.format = format;
  return model;
}

}  // namespace

Result<std::unique_ptr<Models>> Models::make(const ModelsOptions& options) {
  std::unique_ptr<Models> models(new Models(options));
  for (const auto& [name, file] : options.files) {
    if (models->find(name) != nullptr)
      return fail(fmt::format("two models are called {}; -m NAME=FILE gives each a name of its own", name));
    auto model = describe(name, file);
    if (!model) return tl::unexpected(model.error());
    if (options.memory_bytes > 0 && room_for(model->bytes) > options.memory_bytes)
      return fail(fmt::format("the model {} needs about {} bytes; --memory-limit allows {}", name,
                              room_for(model->bytes), options.memory_bytes));
    auto entry = std::make_unique<Entry>();
    entry->name = name;
    entry->file = file;
    entry->file_bytes = model->bytes;
    entry->metrics = std::make_shared<ModelMetrics>();
    models->entries_.push_back(std::move(entry));
    models->list_.push_back(std::move(*model));
  }
  if (models->entries_.empty()) return fail("no model given: name a GGUF file with -m");
  models->loader_ = std::thread([raw = models.get()] { raw->run(); });
  return models;
}

Models::~Models() {
  stop();
  if (loader_.joinable()) loader_.join();
}

Models::Entry* Models::find(const std::string& name) const {
  if (name.empty()) return entries_.empty() ? nullptr : entries_.front().get();
  for (const auto& entry : entries_)
    if (entry->name == name) return entry.get();
  const std::size_t end = name.size() > kLatest.size() ? name.size() - kLatest.size() : 0;
  return end > 0 && name.compare(end, std::string::npos, kLatest) == 0 ? find(name.substr(0, end)) : nullptr;
}

std::string Models::known(const std::string& name) const {
  const Entry* entry = find(name);
  return entry == nullptr ? std::string() : entry->name;
}

void Models::with(const std::string& name, Ready ready) {
  Entry* entry = find(name);
  if (entry == nullptr) return ready(tl::unexpected(unknown_model(name)));
  std::unique_lock<std::mutex> held(mutex_);
  const double now = steady_seconds();
  entry->last_used = now;
  if (entry->host) {
    const Host host = entry->host;
    held.unlock();
    return ready(host);
  }
  if (stops_) {
    held.unlock();
    return ready(tl::unexpected(unavailable("the server is being shut down", "shutting_down")));
  }
  // A file that was missing is looked for again each time, other trouble is not met again at once.
  if (!entry->missing && !entry->problem.empty() && now < entry->failed_at + kRetrySeconds) {
    held.unlock();
    return ready(tl::unexpected(cannot_be_loaded(entry->name)));
  }
  entry->wanted = true;
  entry->waiting.push_back({std::move(ready), now + options_.wait_seconds});
  held.unlock();
  news_.notify_one();
}

void Models::load_first() {
  {
    const std::lock_guard<std::mutex> held(mutex_);
    entries_.front()->wanted = true;
  }
  news_.notify_one();
}

Models::Host Models::loaded(const std::string& name) const {
  const Entry* entry = find(name);
  const std::lock_guard<std::mutex> held(mutex_);
  return entry == nullptr ? nullptr : entry->host;
}

std::vector<NamedMetrics> Models::metrics() const {
  std::vector<NamedMetrics> all;
  for (const auto& entry : entries_) all.push_back({entry->name, entry->metrics.get()});
  return all;
}

int Models::in_flight() const {
  int sum = 0;
  const std::lock_guard<std::mutex> held(mutex_);
  for (const auto& entry : entries_) {
    sum += static_cast<int>(entry->waiting.size());
    if (entry->host) sum += entry->host->in_flight();
  }
  return sum;
}

bool Models::first_is_loaded() const {
  const std::lock_guard<std::mutex> held(mutex_);
  return entries_.front()->host != nullptr || entries_.front()->metrics->loads.load() > 0;
}

std::string Models::first_problem() const {
  const std::lock_guard<std::mutex> held(mutex_);
  return entries_.front()->problem;
}

void Models::run() {
  std::unique_lock<std::mutex> held(mutex_);
  const auto next = [this] {
    return std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) { return entry->wanted; });
  };
  while (true) {
    news_.wait(held, [&] { return stops_ || next() != entries_.end(); });
    if (stops_) return;
    Entry& entry = **next();
    entry.wanted = false;
    held.unlock();
    load(entry);
    held.lock();
  }
}

void Models::load(Entry& entry) {
  if (!make_room(entry)) {
    return answer(
        entry,
        tl::unexpected(unavailable(
            fmt::format("there is no memory for the model {} while others are in work; try again later",
                        entry.name),
            "no_memory")));
  }
  const double start = steady_seconds();
  auto host = make_host(entry);
  if (!host) {
    return answer(entry, tl::unexpected(not_loaded(entry, host.error().message)));
  }
  fmt::print(stderr, "[{} loaded in {:.1f} s, {:.0f} MB with its engine, room for {} tokens, drafters: {}]\n",
             entry.name, steady_seconds() - start, static_cast<double>((*host)->bytes()) / 1e6,
             (*host)->positions(), (*host)->mix().name);
  {
    const std::lock_guard<std::mutex> held(mutex_);
    entry.host = *host;
    entry.problem.clear();
    entry.missing = false;
    ++entry.metrics->loads;
  }
  answer(entry, *host);
}

ApiError Models::not_loaded(Entry& entry, const std::string& why) {
  const bool missing = !std::ifstream(entry.file).is_open(),
             ends = &entry == entries_.front().get() && entry.metrics->loads == 0;
  const std::lock_guard<std::mutex> held(mutex_);
  // Where the server ends it says the sentence itself; and once is enough.
  if (!ends && entry.problem != why) fmt::print(stderr, "[{} cannot be loaded: {}]\n", entry.name, why);
  entry.problem = why;
  entry.missing = missing;
  entry.failed_at = steady_seconds();
  return missing ? file_missing(entry.name) : cannot_be_loaded(entry.name);
}

// The default mix may be made for another model; then `lookup`, which needs no file, guesses, and the log
// says so.
Result<Models::Host> Models::make_host(const Entry& entry) const {
  auto model = Model::load(entry.file, options_.load);
  if (!model) return tl::unexpected(model.error());
  auto host = ModelHost::make(*model, options_.host, options_.mix, entry.metrics);
  if (host || entries_.size() == 1 || options_.mix.drafters == "lookup") return host;
  fmt::print(stderr, "[{}: {}; lookup guesses instead]\n", entry.name, host.error().message);
  Mix plain = options_.mix;
  plain.name = plain.drafters = "lookup";
  HostOptions options = options_.host;
  options.engine.speculation.prior.clear();
  return ModelHost::make(*model, options, plain, entry.metrics);
}

bool Models::make_room(const Entry& entry) {
  if (options_.memory_bytes == 0) return true;
  const std::uint64_t wanted = room_for(entry.file_bytes);
  while (true) {
    Host leaving;  // its thread ends outside the lock
    {
      const std::lock_guard<std::mutex> held(mutex_);
      std::uint64_t used = 0;
      Entry* oldest = nullptr;
      for (const auto& other : entries_) {
        if (!other->host) continue;
        used += other->host->bytes();
        // Nobody but us has it, and nobody can get it while the lock is held.
        const bool idle = other->host.use_count() == 1 && other->host->in_flight() == 0;
        if (idle && (oldest == nullptr || other->last_used < oldest->last_used)) oldest = other.get();
      }
      if (used + wanted <= options_.memory_bytes) return true;
      if (oldest == nullptr) return false;
      leaving = std::move(oldest->host);
      ++oldest->metrics->unloads;
      fmt::print(stderr, "[{} unloaded to make room for {}]\n", oldest->name, entry.name);
    }
  }
}

void Models::answer(Entry& entry, const ApiResult<Host>& host) {
  std::vector<Waiting> waiting;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    waiting.swap(entry.waiting);
    entry.wanted = false;
  }
  for (Waiting& one : waiting) one.ready(host);
}

void Models::expire() {
  std::vector<Ready> late;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    const double now = steady_seconds();
    for (const auto& entry : entries_) {
      for (Waiting& one : entry->waiting)
        if (now >= one.until) late.push_back(std::exchange(one.ready, nullptr));
      std::erase_if(entry->waiting, [](const Waiting& one) { return !one.ready; });
    }
  }
  for (const Ready& ready : late)
    ready(tl::unexpected(unavailable("the model is still being loaded; try again later", "model_loading")));
}

void Models::stop() {
  std::vector<Ready> waiting;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    stops_ = true;
    for (const auto& entry : entries_) {
      for (Waiting& one : entry->waiting) waiting.push_back(std::move(one.ready));
      entry->waiting.clear();
    }
  }
  news_.notify_one();
  for (const Ready& ready : waiting)
    ready(tl::unexpected(unavailable("the server is being shut down", "shutting_down")));
}

}  // namespace coppice::serve
