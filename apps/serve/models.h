// The models that this server has, by name: loaded when somebody asks for them, and unloaded, those that
// nobody has asked for longest first, when another needs the memory.
#pragma once

#include <coppice/coppice.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api.h"
#include "metrics.h"
#include "mixes.h"
#include "model_host.h"

namespace coppice::serve {

struct ModelsOptions {
  std::vector<std::pair<std::string, std::string>> files;  // name, GGUF file; the first is the default
  ModelOptions load;
  HostOptions host;
  Mix mix;                         // the default one
  std::uint64_t memory_bytes = 0;  // of all loaded models with their engines; 0: no limit
  double wait_seconds = 60;        // a request waits for its model to be loaded, at most
};

class Models {
 public:
  using Host = std::shared_ptr<ModelHost>;
  using Ready = std::function<void(ApiResult<Host>)>;

  // Reads the files' headers; the error says which is wrong, or larger than all memory there is. Nothing is
  // loaded yet.
  static Result<std::unique_ptr<Models>> make(const ModelsOptions& options);
  ~Models();

  // "" is the default one. `ready` is called once: at once if the model is loaded or there is none of that
  // name, else from the loader's thread. It keeps the host, and with it the model, as long as it likes.
  void with(const std::string& name, Ready ready);
  void load_first();  // the default one, before anybody asks for it
  // The host if it is loaded.
  Host loaded(const std::string& name) const;
  // The name by which it is listed ("smollm2:latest" is "smollm2"); empty if there is none.
  std::string known(const std::string& name) const;
  const std::vector<ServedModel>& list() const { return list_; }
  std::vector<NamedMetrics> metrics() const;
  int in_flight() const;              // requests of all models
  bool first_is_loaded() const;       // the default model
  std::string first_problem() const;  // why that failed; empty while it has not
  void stop();                        // who waits hears 503; loads nothing more
  void expire();                      // now and then: who has waited too long hears 503

 private:
  struct Waiting {
    Ready ready;
    double until = 0;
  };
  struct Entry {
    std::string name, file;
    std::uint64_t file_bytes = 0;
    std::shared_ptr<ModelMetrics> metrics;
    // Guarded by mutex_:
    Host host;
    bool wanted = false;  // the loader has it to do
    double last_used = 0;
    std::vector<Waiting> waiting;
    std::string problem;   // why it could not be loaded
    bool missing = false;  // that was because its file is not there
    double failed_at = 0;
  };

  explicit Models(const ModelsOptions& options) : options_(options) {}
  Entry* find(const std::string& name) const;
  void run();
  void load(Entry& entry);
  ApiError not_loaded(Entry& entry, const std::string& why);
  Result<Host> make_host(const Entry& entry) const;
  bool make_room(const Entry& entry);
  void answer(Entry& entry, const ApiResult<Host>& host);

  const ModelsOptions options_;
  std::vector<std::unique_ptr<Entry>> entries_;  // as given; never changes
  std::vector<ServedModel> list_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  bool stops_ = false;  // guarded by mutex_
  std::thread loader_;
};

}  // namespace coppice::serve
