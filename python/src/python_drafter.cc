#include "python_drafter.h"

#include <string>
#include <utility>
#include <vector>

#include "convert.h"

namespace coppice::python {
namespace {

constexpr int kDeepest = 64;  // guesses on one another: no tree is deeper

thread_local bool inside = false;

struct Inside {
  Inside() : outer(std::exchange(inside, true)) {}
  ~Inside() { inside = outer; }
  bool outer;
};

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string to_string(nb::handle object) {
  const nb::str made(object);
  return made.c_str();
}

// "ValueError: no idea (line 12 of mine.py)"
std::string sentence(const nb::python_error& error) {
  std::string out = to_string(error.type().attr("__name__")) + ": " + to_string(error.value());
  nb::object trace = error.traceback();
  if (!trace.is_valid() || trace.is_none()) return out;
  while (!trace.attr("tb_next").is_none()) trace = trace.attr("tb_next");
  const std::string file = to_string(trace.attr("tb_frame").attr("f_code").attr("co_filename"));
  return out + " (line " + to_string(trace.attr("tb_lineno")) + " of " + file_name(file) + ")";
}

nb::list list_of(std::span<const Token> tokens) {
  nb::list out;
  for (const Token token : tokens) out.append(token);
  return out;
}

// Reads [(token, chance), (token, chance, [what follows]), ...].
class AnswerReader {
 public:
  std::vector<Guess> read(nb::handle answer) {
    if (!answer.is_none()) read_siblings(answer, -1, 1);
    return std::move(guesses_);
  }

 private:
  void read_siblings(nb::handle siblings, int parent, int depth) {
    if (depth > kDeepest)
      throw Failure("guesses stand on one another more than " + std::to_string(kDeepest) + " deep");
    int place = 0;
    for (nb::handle entry : siblings) {
      ++place;
      if (guesses_.size() > kMostGuesses) return;  // too many is too many: the adapter says so
      if (!nb::isinstance<nb::tuple>(entry) && !nb::isinstance<nb::list>(entry)) wrong(place, entry);
      const std::size_t parts = nb::len(entry);
      if (parts != 2 && parts != 3) wrong(place, entry);
      read_guess(entry, parts, parent, depth);
    }
  }

  void read_guess(nb::handle entry, std::size_t parts, int parent, int depth) {
    const auto at = static_cast<int>(guesses_.size());
    guesses_.push_back({whole_number(entry[0]), number(entry[1]), parent, false});
    if (parts == 2) return;
    const nb::object children = entry[2];
    read_siblings(children, at, depth + 1);
    guesses_[static_cast<std::size_t>(at)].last = guesses_.size() == static_cast<std::size_t>(at) + 1;
  }

  [[noreturn]] static void wrong(int place, nb::handle entry) {
    throw Failure("propose() should give (token, chance) or (token, chance, [what follows]); entry " +
                  std::to_string(place) + " is " + to_string(nb::repr(entry)).substr(0, 80));
  }
  static Token whole_number(nb::handle object) {
    const auto index = nb::steal<nb::object>(PyNumber_Index(object.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    const long long token = PyLong_AsLongLong(index.ptr());
    if (token == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return token < 0 || token > 0x7fffffff ? kNoToken
                                           : static_cast<Token>(token);  // which the adapter refuses
  }
  static float number(nb::handle object) {
    const double chance = PyFloat_AsDouble(object.ptr());
    if (chance == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return static_cast<float>(chance);
  }

  std::vector<Guess> guesses_;
};

class PythonDrafter final : public CustomDrafter {
 public:
  explicit PythonDrafter(nb::object drafter) : drafter_(std::move(drafter)) {
    propose_ = drafter_.attr("propose");
    if (nb::hasattr(drafter_, "accepted")) accepted_ = drafter_.attr("accepted");
  }
  ~PythonDrafter() override {
    const nb::gil_scoped_acquire gil;
    texts_.clear();
    accepted_.reset();
    propose_.reset();
    drafter_.reset();
  }

  void begin(std::uint64_t text, std::span<const Token> prompt) override {
    const nb::gil_scoped_acquire gil;
    texts_[text] = list_of(prompt);
  }

  Result<std::vector<Guess>> propose(const DraftPlace& place) override {
    const nb::gil_scoped_acquire gil;
    std::vector<Guess> guesses;
    const std::string problem = call([&] { guesses = AnswerReader().read(propose_(tokens_at(place))); });
    if (!problem.empty()) return fail(problem);
    return guesses;
  }

  void accepted(std::uint64_t, std::span<const Token> tokens) override {
    const nb::gil_scoped_acquire gil;
    if (!accepted_.is_valid()) return;
    const std::string problem = call([&] { accepted_(list_of(tokens)); });
    if (!problem.empty()) throw Failure(problem);
  }

  void end(std::uint64_t text) override {
    const nb::gil_scoped_acquire gil;
    texts_.erase(text);
  }

 private:
  // The text with the path behind it, as a list of the drafter's own. The text's integers are made once.
  nb::list tokens_at(const DraftPlace& place) {
    nb::list& text = texts_[place.text];
    for (const Token token : place.committed.subspan(nb::len(text))) text.append(token);
    auto tokens = nb::steal<nb::list>(PyList_GetSlice(text.ptr(), 0, PY_SSIZE_T_MAX));
    if (!tokens.is_valid()) throw nb::python_error();
    for (const Token token : place.path) tokens.append(token);
    return tokens;
  }

  // What went wrong; empty: nothing. Ctrl-C in the drafter is meant for whoever waits for the answer.
  template <class Body>
  static std::string call(Body&& body) {
    const Inside here;
    try {
      body();
      return {};
    } catch (const nb::python_error& error) {
      if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
      return sentence(error);
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  nb::object drafter_, propose_, accepted_;
  std::map<std::uint64_t, nb::list> texts_;
};

}  // namespace

bool inside_a_drafter() { return inside; }

Result<std::shared_ptr<CustomDrafter>> make_python_drafter(nb::object drafter) {
  const nb::object propose = nb::getattr(drafter, "propose", nb::none());
  if (PyCallable_Check(propose.ptr()) == 0)
    return fail("a custom drafter needs a method propose(tokens); " +
                to_string(drafter.type().attr("__name__")) + " has none");
  return std::make_shared<PythonDrafter>(std::move(drafter));
}

}  // namespace coppice::python
