// Functions that every template has: jinja2's range, dict and namespace, and transformers' two.
#include <fmt/format.h>

#include <ctime>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/runtime.h"

namespace coppice::core::jinja {
namespace {

constexpr std::uint64_t kLongestRange = 100000;  // the sandbox's own

Result<Value> range(Runtime& runtime, const Arguments& arguments) {
  const Value* slots[3];
  COPPICE_TRY_STATUS(arguments.bind("range", {"/start", "/stop", "/step"}, slots));
  std::int64_t numbers[3] = {0, 0, 1};
  if (!slots[0]) return fail("range wants a whole number");
  for (int i = 0; i < 3; ++i)
    if (slots[i] && !slots[i]->to_integer(numbers[i]))
      return fail(slots[i]->is_undefined()
                      ? *slots[i]->undefined()->why
                      : fmt::format("range wants whole numbers, not a {}", type_name(*slots[i])));
  Sequence sequence;
  sequence.form = Sequence::Form::range;
  sequence.start = slots[1] ? numbers[0] : 0;
  sequence.stop = slots[1] ? numbers[1] : numbers[0];
  sequence.step = numbers[2];
  if (sequence.step == 0) return fail("range's step cannot be 0");
  const bool up = sequence.step > 0;
  const auto low = static_cast<std::uint64_t>(up ? sequence.start : sequence.stop);
  const auto high = static_cast<std::uint64_t>(up ? sequence.stop : sequence.start);
  const bool empty = up ? sequence.start >= sequence.stop : sequence.start <= sequence.stop;
  const std::uint64_t size =
      up ? static_cast<std::uint64_t>(sequence.step) : 0 - static_cast<std::uint64_t>(sequence.step);
  const std::uint64_t count = empty ? 0 : (high - low - 1) / size + 1;
  if (count > kLongestRange)
    return fail(
        fmt::format("a range has at most {} numbers, and this one would have {}", kLongestRange, count));
  COPPICE_TRY_STATUS(runtime.charge(kItem * count));
  for (std::uint64_t i = 0; i < count; ++i)
    sequence.items.emplace_back(sequence.start + static_cast<std::int64_t>(i) * sequence.step);
  sequence.weight += 8 * count;
  return Value(std::move(sequence));
}

// dict(...) and namespace(...): a mapping or pairs, and named values over them.
Result<std::vector<std::pair<Value, Value>>> entries(Runtime& runtime, const Arguments& arguments,
                                                     std::string_view what) {
  std::vector<std::pair<Value, Value>> entries;
  const auto put = [&](const Value& key, const Value& value) -> Status {
    COPPICE_TRY_STATUS(runtime.charge(16 + entries.size()));
    for (auto& entry : entries)
      if (equal(entry.first, key)) return entry.second = value, Status();
    entries.emplace_back(key, value);
    return {};
  };
  if (arguments.positional.size() > 1)
    return fail(fmt::format("{} takes at most one value without a name", what));
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (const Dict* dict = from.dict()) {
      entries = dict->entries;
      COPPICE_TRY_STATUS(runtime.charge(2 * kItem * entries.size()));
    } else {
      COPPICE_TRY(const std::vector<Value> items, runtime.iterate(from));
      for (const Value& item : items) {
        COPPICE_TRY(const std::vector<Value> pair, runtime.iterate(item));
        if (pair.size() != 2 || !hashable(pair[0]))
          return fail(fmt::format("{} wants pairs of a key and a value", what));
        COPPICE_TRY_STATUS(put(pair[0], pair[1]));
      }
    }
  }
  for (const auto& [name, value] : arguments.named) COPPICE_TRY_STATUS(put(Value(name), value));
  return entries;
}

Result<Value> dict(Runtime& runtime, const Arguments& arguments) {
  COPPICE_TRY(auto all, entries(runtime, arguments, "dict"));
  return make_dict(std::move(all));
}

Result<Value> make_namespace(Runtime& runtime, const Arguments& arguments) {
  COPPICE_TRY(auto all, entries(runtime, arguments, "namespace"));
  COPPICE_TRY(Namespace * space, runtime.make<Namespace>());
  for (auto& [key, value] : all)
    if (key.text()) space->attributes.emplace_back(key.text()->bytes(), std::move(value));
  return Value(static_cast<Object*>(space));
}

Result<Value> raise_exception(Runtime& runtime, const Arguments& arguments) {
  const Value* message = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("raise_exception", {"message"}, &message));
  if (!message) return fail("raise_exception wants a message");
  COPPICE_TRY(const Text text, runtime.to_text(*message));
  return fail("the template refuses: " + text.bytes());
}

Result<Value> strftime_now(Runtime& runtime, const Arguments& arguments) {
  const Value* format = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("strftime_now", {"format"}, &format));
  if (!format || !format->text())
    return fail("strftime_now wants a format, as in strftime_now(\"%d %b %Y\")");
  constexpr std::size_t kLongest = 256;
  if (format->text()->size() > kLongest)
    return fail(fmt::format("strftime_now wants a format of at most {} bytes", kLongest));
  const std::time_t now = runtime.now();
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::string shown(16 * kLongest, '\0');
  shown.resize(std::strftime(shown.data(), shown.size(), format->text()->bytes().c_str(), &parts));
  return Value(Text(shown, format->text()->data().empty() ? Origin::own : Origin::data));
}

}  // namespace

const std::vector<std::pair<std::string_view, Function::Run>>& builtin_functions() {
  static const std::vector<std::pair<std::string_view, Function::Run>> kFunctions = {
      {"range", range},
      {"dict", dict},
      {"namespace", make_namespace},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  return kFunctions;
}

}  // namespace coppice::core::jinja
