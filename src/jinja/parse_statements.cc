#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "jinja/parser.h"
#include "jinja/print.h"

namespace coppice::core::jinja {
namespace {

Statement& add(Body& out, Statement::Kind kind, std::uint32_t at) {
  Statement& statement = out.emplace_back();
  statement.kind = kind;
  statement.at = at;
  return statement;
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "text";
    case TokenKind::variable_begin:
      return "{{";
    case TokenKind::variable_end:
      return "}}";
    case TokenKind::block_begin:
      return "{%";
    case TokenKind::block_end:
      return "%}";
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::string:
      return fmt::format("the text {}", in_quotes(token.text));
    default:
      return token.text;
  }
}

}  // namespace

Result<Program> parse(std::string_view source) {
  constexpr std::size_t kLongest = std::size_t{16} << 20;
  if (source.size() > kLongest)
    return fail(fmt::format("the template has {} bytes; at most {} are allowed", source.size(), kLongest));
  const std::string text = normalise_newlines(source);
  COPPICE_TRY(std::vector<Token> tokens, tokenize(text));
  return Parser(text, std::move(tokens)).run();
}

Parser::Parser(std::string_view source, std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  program_.source = source;
  program_.loop = symbol("loop");
}

Result<Program> Parser::run() {
  COPPICE_TRY(program_.body, body({}, ""));
  if (!unknown_.empty()) return wrong(unknown_[0].at, unknown_[0].what);
  return std::move(program_);
}

bool Parser::skip_sign(std::string_view spelled) {
  if (!now().is_sign(spelled)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view spelled) {
  if (!now().is_name(spelled)) return false;
  take();
  return true;
}

tl::unexpected<Error> Parser::wrong(std::uint32_t at, std::string_view what) const {
  return fail_at(program_.source, at, what);
}

tl::unexpected<Error> Parser::unexpected(std::string_view wanted) const {
  return wrong(now().at, fmt::format("{} was expected and {} found", wanted, describe(now())));
}

Status Parser::expect_sign(std::string_view spelled) {
  if (!skip_sign(spelled)) return unexpected(spelled);
  return {};
}

Result<std::string> Parser::expect_name(std::string_view what) {
  if (now().kind != TokenKind::name) return unexpected(what);
  return take().text;
}

Status Parser::expect_block_end() {
  if (now().kind != TokenKind::block_end) return unexpected("%}");
  take();
  return {};
}

Symbol Parser::symbol(std::string_view name) {
  const auto [found, added] =
      symbols_.try_emplace(std::string(name), static_cast<Symbol>(program_.names.size()));
  if (added) {
    program_.names.emplace_back(name);
    uses_.push_back(0);
  }
  return found->second;
}

Status Parser::check_depth() const {
  if (depth_ > kDeepest)
    return wrong(now().at,
                 fmt::format("brackets and blocks nest more than {} deep, which is the limit", kDeepest));
  return {};
}

void Parser::forgive(std::size_t from) {
  const auto first = unknown_.begin() + static_cast<std::ptrdiff_t>(from);
  unknown_.erase(std::remove_if(first, unknown_.end(), [](const Unknown& u) { return !u.certain; }),
                 unknown_.end());
}

void Parser::hold_against(std::size_t from) {
  for (std::size_t i = from; i < unknown_.size(); ++i) unknown_[i].certain = true;
}

// Up to one of `ends`, which is then the token at hand; without ends, up to the end of the template.
Result<Body> Parser::body(std::initializer_list<std::string_view> ends, std::string_view opened) {
  const Level level(depth_);
  COPPICE_TRY_STATUS(check_depth());
  const std::uint32_t begin = now().at;
  Body out;
  while (true) {
    const Token& token = now();
    if (token.kind == TokenKind::end) {
      if (ends.size() == 0) return out;
      return wrong(begin, fmt::format("this {} block has no {}", opened, *(ends.end() - 1)));
    }
    if (token.kind == TokenKind::data) {
      add(out, Statement::Kind::data, token.at).text = token.text;
      take();
    } else if (token.kind == TokenKind::variable_begin) {
      take();
      COPPICE_TRY(ExpressionPtr value, tuple(true, false));
      if (now().kind != TokenKind::variable_end) return unexpected("}}");
      take();
      add(out, Statement::Kind::print, value->at).expression = std::move(value);
    } else {
      take();  // {%
      for (const std::string_view end : ends)
        if (now().is_name(end)) return out;
      COPPICE_TRY_STATUS(statement(out));
      COPPICE_TRY_STATUS(expect_block_end());
    }
  }
}

Result<std::shared_ptr<const Body>> Parser::block(std::initializer_list<std::string_view> ends,
                                                  std::string_view opened) {
  skip_sign(":");
  COPPICE_TRY_STATUS(expect_block_end());
  COPPICE_TRY(Body inside, body(ends, opened));
  return std::make_shared<const Body>(std::move(inside));
}

Result<std::shared_ptr<const Body>> Parser::closed_block(std::string_view end, std::string_view opened) {
  const int loops = std::exchange(loops_, 0);
  const std::size_t unknown = unknown_.size();
  auto inside = block({end}, opened);
  loops_ = loops;
  hold_against(unknown);
  if (inside) take();
  return inside;
}

Status Parser::statement(Body& out) {
  const std::uint32_t at = now().at;
  COPPICE_TRY(const std::string name, expect_name("the name of a tag"));
  if (name == "for") return for_loop(out, at);
  if (name == "if") return branches(out, at);
  if (name == "set") return set(out, at);
  if (name == "macro") return macro(out, at);
  if (name == "call") return call_block(out, at);
  if (name == "filter") return filter_block(out, at);
  if (name == "with") return with(out, at);
  if (name == "generation") return generation(out, at);
  if (name == "print") return print(out, at);
  if (name == "break") return jump(out, at, Statement::Kind::leave);
  if (name == "continue") return jump(out, at, Statement::Kind::next);
  return wrong(at,
               fmt::format("the tag {} has no place here; tags are for, if, set, macro, call, filter, with, "
                           "generation, print, break, continue, raw, and their ends",
                           in_quotes(name)));
}

Status Parser::print(Body& out, std::uint32_t at) {
  while (now().kind != TokenKind::block_end) {
    if (!out.empty() && now().is_sign(",")) take();
    COPPICE_TRY(ExpressionPtr value, expression());
    add(out, Statement::Kind::print, at).expression = std::move(value);
    if (now().kind != TokenKind::block_end && !now().is_sign(",")) return unexpected(",");
  }
  return {};
}

Status Parser::for_loop(Body& out, std::uint32_t at) {
  Statement made;
  made.kind = Statement::Kind::loop;
  made.at = at;
  COPPICE_TRY(made.target, target(false));
  if (!skip_name("in")) return unexpected("in");
  COPPICE_TRY(made.expression, tuple(false, false));
  const std::size_t unknown = unknown_.size();
  if (skip_name("if")) {
    COPPICE_TRY(made.condition, expression());
  }
  if (now().is_name("recursive")) return wrong(now().at, "recursive loops are not known here");
  ++loops_;
  auto inside = block({"else", "endfor"}, "for");
  --loops_;
  COPPICE_TRY(made.body, std::move(inside));
  hold_against(unknown);
  if (take().text == "else") {
    const std::size_t otherwise = unknown_.size();
    COPPICE_TRY(made.otherwise, block({"endfor"}, "for"));
    hold_against(otherwise);
    take();
  }
  out.push_back(std::move(made));
  return {};
}

Status Parser::branches(Body& out, std::uint32_t at) {
  const std::size_t unknown = unknown_.size();
  Statement made;
  made.kind = Statement::Kind::branch;
  made.at = at;
  for (std::string_view word = "if"; word != "endif";) {
    Branch& branch = made.branches.emplace_back();
    if (word != "else") {
      COPPICE_TRY(branch.condition, tuple(false, false));
      COPPICE_TRY(branch.body, block({"elif", "else", "endif"}, "if"));
    } else {
      COPPICE_TRY(branch.body, block({"endif"}, "if"));
    }
    word = take().text;
  }
  forgive(unknown);
  out.push_back(std::move(made));
  return {};
}

Status Parser::set(Body& out, std::uint32_t at) {
  Statement made;
  made.at = at;
  COPPICE_TRY(made.target, target(true));
  if (skip_sign("=")) {
    made.kind = Statement::Kind::set;
    COPPICE_TRY(made.expression, tuple(true, false));
  } else {
    made.kind = Statement::Kind::set_block;
    const std::size_t unknown = unknown_.size();
    while (skip_sign("|")) {
      COPPICE_TRY(made.expression, filter(std::move(made.expression)));
    }
    hold_against(unknown);
    COPPICE_TRY(made.body, closed_block("endset", "set"));
  }
  out.push_back(std::move(made));
  return {};
}

Status Parser::parameters(MacroDefinition& macro) {
  COPPICE_TRY_STATUS(expect_sign("("));
  while (!now().is_sign(")")) {
    if (!macro.parameters.empty()) COPPICE_TRY_STATUS(expect_sign(","));
    const std::uint32_t at = now().at;
    COPPICE_TRY(const std::string name, expect_name("the name of a parameter"));
    Parameter parameter{symbol(name), name, nullptr};
    if (skip_sign("=")) {
      COPPICE_TRY(parameter.otherwise, expression());
    } else if (!macro.parameters.empty() && macro.parameters.back().otherwise) {
      return wrong(at, fmt::format("the parameter {} has no default and follows one that has", name));
    }
    macro.parameters.push_back(std::move(parameter));
  }
  take();
  return {};
}

Status Parser::macro_body(MacroDefinition& macro, std::string_view end, std::string_view opened) {
  macro.caller = symbol("caller");
  macro.varargs = symbol("varargs");
  macro.kwargs = symbol("kwargs");
  const auto uses = [&](Symbol name) { return uses_[name]; };
  const std::uint32_t callers = uses(macro.caller), more = uses(macro.varargs), named = uses(macro.kwargs);
  COPPICE_TRY(macro.body, closed_block(end, opened));
  const auto is_parameter = [&](Symbol name) {
    return std::any_of(macro.parameters.begin(), macro.parameters.end(),
                       [&](const Parameter& p) { return p.symbol == name; });
  };
  macro.uses_caller = uses(macro.caller) > callers && !is_parameter(macro.caller);
  macro.uses_varargs = uses(macro.varargs) > more && !is_parameter(macro.varargs);
  macro.uses_kwargs = uses(macro.kwargs) > named && !is_parameter(macro.kwargs);
  return {};
}

Status Parser::macro(Body& out, std::uint32_t at) {
  auto macro = std::make_shared<MacroDefinition>();
  COPPICE_TRY(macro->name, expect_name("the name of a macro"));
  COPPICE_TRY_STATUS(parameters(*macro));
  COPPICE_TRY_STATUS(macro_body(*macro, "endmacro", "macro"));
  Statement& made = add(out, Statement::Kind::macro, at);
  made.symbol = symbol(macro->name);
  made.macro = std::move(macro);
  return {};
}

Status Parser::call_block(Body& out, std::uint32_t at) {
  auto macro = std::make_shared<MacroDefinition>();
  macro->name = "caller";
  if (now().is_sign("(")) COPPICE_TRY_STATUS(parameters(*macro));
  COPPICE_TRY(ExpressionPtr callee, expression());
  if (callee->kind != Expression::Kind::call) return wrong(callee->at, "call wants a macro that it calls");
  COPPICE_TRY_STATUS(macro_body(*macro, "endcall", "call"));
  Statement& made = add(out, Statement::Kind::call_block, at);
  made.expression = std::move(callee);
  made.macro = std::move(macro);
  return {};
}

Status Parser::filter_block(Body& out, std::uint32_t at) {
  const std::size_t unknown = unknown_.size();
  COPPICE_TRY(ExpressionPtr through, filter(nullptr));
  while (skip_sign("|")) {
    COPPICE_TRY(through, filter(std::move(through)));
  }
  hold_against(unknown);
  COPPICE_TRY(auto inside, closed_block("endfilter", "filter"));
  Statement& made = add(out, Statement::Kind::filter_block, at);
  made.expression = std::move(through);
  made.body = std::move(inside);
  return {};
}

Status Parser::with(Body& out, std::uint32_t at) {
  Statement made;
  made.kind = Statement::Kind::scope;
  made.at = at;
  while (now().kind != TokenKind::block_end) {
    if (!made.values.empty()) COPPICE_TRY_STATUS(expect_sign(","));
    COPPICE_TRY(Target name, one_target(false));
    COPPICE_TRY_STATUS(expect_sign("="));
    COPPICE_TRY(ExpressionPtr value, expression());
    made.values.emplace_back(std::move(name), std::move(value));
  }
  const std::size_t unknown = unknown_.size();
  COPPICE_TRY(made.body, block({"endwith"}, "with"));
  hold_against(unknown);
  take();
  out.push_back(std::move(made));
  return {};
}

// transformers' own tag: it marks what an assistant said and renders as what is in it.
Status Parser::generation(Body& out, std::uint32_t at) {
  COPPICE_TRY(auto inside, closed_block("endgeneration", "generation"));
  add(out, Statement::Kind::scope, at).body = std::move(inside);
  return {};
}

Status Parser::jump(Body& out, std::uint32_t at, Statement::Kind kind) {
  if (loops_ == 0) return wrong(at, "break and continue have a place in a for loop only");
  add(out, kind, at);
  return {};
}

Result<Target> Parser::one_target(bool with_namespace) {
  const std::uint32_t at = now().at;
  if (skip_sign("(")) {
    const Level level(depth_);
    COPPICE_TRY_STATUS(check_depth());
    COPPICE_TRY(Target inside, target(with_namespace));
    COPPICE_TRY_STATUS(expect_sign(")"));
    return inside;
  }
  COPPICE_TRY(const std::string name, expect_name("a name to assign to"));
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"})
    if (name == constant) return wrong(at, fmt::format("{} cannot be assigned to", name));
  Target made;
  made.at = at;
  made.symbol = symbol(name);
  if (with_namespace && skip_sign(".")) {
    COPPICE_TRY(made.attribute, expect_name("the name of an attribute"));
    ++uses_[made.symbol];
  }
  return made;
}

Result<Target> Parser::target(bool with_namespace) {
  Target tuple;
  tuple.at = now().at;
  COPPICE_TRY(tuple.parts.emplace_back(), one_target(with_namespace));
  while (skip_sign(",")) {
    tuple.is_tuple = true;
    if (now().is_name("in") || now().is_sign("=") || now().is_sign(")") || now().kind == TokenKind::block_end)
      break;
    COPPICE_TRY(tuple.parts.emplace_back(), one_target(with_namespace));
  }
  if (tuple.is_tuple) return tuple;
  Target one = std::move(tuple.parts[0]);
  return one;
}

}  // namespace coppice::core::jinja
