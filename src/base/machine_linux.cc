// What this process may use of the machine: cores, memory, directories. A container's limits stand in its
// control group, of which there are two generations: one hierarchy under /sys/fs/cgroup (v2), or one for each
// controller (v1). A limit may stand at any level above the process, so each is walked from the process's
// group to its root.
#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/os.h"

namespace coppice::core {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::string contents(const std::string& path) { return read_file(path).value_or(std::string()); }

// The first number at or after `text`'s start, blanks skipped; nothing for "max" or an empty text.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_in(const std::string& path) { return leading_number(contents(path)); }

// The number behind `label` at the start of a line.
std::optional<std::uint64_t> labelled(std::string_view text, std::string_view label) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.substr(at).starts_with(label)) return leading_number(text.substr(at + label.size()));
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    at = end + 1;
  }
  return std::nullopt;
}

bool lists(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == wanted) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

// The directories of this process's groups for `controller` (empty: v2), innermost first.
std::vector<std::string> group_directories(std::string_view controller) {
  const std::string text = contents("/proc/self/cgroup");  // lines "id:controllers:/path"
  std::vector<std::string> result;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size()));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? !controllers.empty() : !lists(controllers, controller)) continue;
    std::string root = "/sys/fs/cgroup";
    if (!controller.empty()) root += "/" + std::string(controller);
    std::string path(line.substr(second + 1));
    while (!path.empty() && path != "/") {
      result.push_back(root + path);
      path.resize(path.find('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    result.push_back(root);
  }
  return result;
}

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0)
    return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));  // more than 1024 CPUs
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  return std::max(1, separate_cores(cpus, "/sys/devices/system/cpu"));
}

// Cores' worth of time the control groups allow, rounded up; kNoLimit where they do not say.
std::uint64_t group_cores() {
  std::uint64_t cores = kNoLimit;
  const auto apply = [&](std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period) {
    if (quota && period && *quota > 0 && *period > 0)
      cores = std::min(cores, (*quota + *period - 1) / *period);
  };
  for (const std::string& directory : group_directories("")) {
    const std::string text = contents(directory + "/cpu.max");  // "200000 100000" or "max 100000"
    const std::size_t blank = text.find(' ');
    if (blank != std::string::npos)
      apply(leading_number(text), leading_number(std::string_view(text).substr(blank)));
  }
  for (const std::string& directory :
       group_directories("cpu"))  // a quota of -1 is none, and is no number here
    apply(number_in(directory + "/cpu.cfs_quota_us"), number_in(directory + "/cpu.cfs_period_us"));
  return cores;
}

struct GroupMemory {
  std::uint64_t limit = kNoLimit;
  std::uint64_t available = kNoLimit;
};

struct GroupFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;  // in memory.stat: pages of files, which make room when needed
};

void apply_group(GroupMemory& memory, const std::string& directory, const GroupFiles& files) {
  const auto limit = number_in(directory + files.limit);
  if (!limit) return;
  memory.limit = std::min(memory.limit, *limit);
  const std::uint64_t used = number_in(directory + files.used).value_or(0);
  const std::uint64_t cached = labelled(contents(directory + "/memory.stat"), files.reclaimable).value_or(0);
  const std::uint64_t held = used - std::min(used, cached);
  memory.available = std::min(memory.available, *limit - std::min(*limit, held));
}

GroupMemory group_memory() {
  GroupMemory memory;
  for (const std::string& directory : group_directories(""))
    apply_group(memory, directory, {"/memory.max", "/memory.current", "inactive_file "});
  for (const std::string& directory : group_directories("memory"))
    apply_group(memory, directory,
                {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file "});
  return memory;
}

std::uint64_t machine_memory(std::string_view label) {
  return labelled(contents("/proc/meminfo"), label).value_or(kNoLimit / 1024) * 1024;  // given in KiB
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

int separate_cores(std::span<const int> cpus, const std::string& folder) {
  std::set<std::string> cores;  // named by their list of hardware threads
  int unknown = 0;
  for (const int cpu : cpus) {
    const std::string threads =
        contents(folder + "/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    if (threads.empty()) {
      ++unknown;
    } else {
      cores.insert(threads);
    }
  }
  return static_cast<int>(cores.size()) + unknown;
}

int usable_cores() {
  const auto affinity = static_cast<std::uint64_t>(affinity_cores());
  return static_cast<int>(std::max<std::uint64_t>(1, std::min(affinity, group_cores())));
}

std::uint64_t memory_total() { return std::min(machine_memory("MemTotal:"), group_memory().limit); }

std::uint64_t memory_available() {
  return std::min(machine_memory("MemAvailable:"), group_memory().available);
}

std::uint64_t peak_memory() { return labelled(contents("/proc/self/status"), "VmHWM:").value_or(0) * 1024; }

std::string home_directory() {
  if (std::string home = environment("HOME"); !home.empty()) return home;
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr && entry->pw_dir != nullptr ? std::string(entry->pw_dir) : std::string();
}

std::string cache_directory() {
  if (std::string chosen = environment("COPPICE_CACHE"); !chosen.empty()) return chosen;
  if (std::string shared = environment("XDG_CACHE_HOME"); !shared.empty()) return shared + "/coppice";
  return home_directory() + "/.cache/coppice";
}

}  // namespace coppice::core
