// Bodies with every field, for each API; the first byte is the API, and the family of calls of tools times
// five.
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  constexpr std::string_view kTools =
      R"("tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}}])";
  const std::string sampling =
      R"("model":"tiny","seed":1,"temperature":0.5,"top_p":0.9,"top_k":4,"min_p":0.1,"typical_p":0.9,"repetition_penalty":1.1,"presence_penalty":0.5,"frequency_penalty":0.5,"penalty_window":8,"stop":["a","bc"],"logit_bias":{"3":-100},"ignore_eos":true,"n":2,"user":"u","speculation":{"drafters":"lookup","policy":"auto","nodes":4,"depth":2,"width":2,"price":0.1,"pass_price":0.2,"trace":true,"stats":true})";
  const std::string stream = R"(,"stream":true,"stream_options":{"include_usage":true})";
  const std::string seeds[] = {
      std::string(1, '\0') + "{}",
      std::string(1, '\0') +
          R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}],)" +
          std::string(kTools) +
          R"(,"tool_choice":"auto","parallel_tool_calls":false,"logprobs":true,"top_logprobs":2,"max_completion_tokens":4,)" +
          sampling + stream + "}",
      std::string(1, '\0') +
          R"({"messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"function","function":{"name":"f"}},)" +
          std::string(kTools) + "}",
      std::string(1, '\0') +
          R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"a":1},"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"a":{"enum":[1,"b"]}}}}}})",
      std::string(1, '\1') + R"({"prompt":["one","a"],"echo":true,"max_tokens":3,)" + sampling + stream + "}",
      std::string(1, '\1') + R"({"prompt":[[1,2],[3]],"best_of":1,"logprobs":2,"max_tokens":3})",
      std::string(1, '\1') + R"({"prompt":"a","suffix":"b"})",
      std::string(1, '\1') + R"({"prompt":"a","grammar":"root ::= \"a\" | [b-d]+"})",
      std::string(1, '\2') +
          R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},{"role":"tool","tool_name":"f","content":"r"}],)" +
          std::string(kTools) +
          R"(,"stream":false,"think":false,"options":{"num_predict":4,"num_ctx":400,"repeat_last_n":8,"repeat_penalty":1.2,"temperature":0,"top_k":3,"stop":"x","seed":2}})",
      std::string(1, '\2') + R"({"messages":[{"role":"user","content":"a"}],"format":{"type":"object"}})",
      std::string(1, '\3') + R"({"prompt":"a","system":"s","format":"json","speculation":{"trace":true}})",
      std::string(1, '\3') + R"({"prompt":"{\"name\": \"f\", \"arguments\": {}}","raw":true,"stream":false})",
      std::string(1, '\4') +
          R"({"content":"a<|im_end|>","add_special":false,"parse_special":true,"with_pieces":true})",
      std::string(1, '\4') + R"({"messages":[{"role":"user","content":"a"}],"add_generation_prompt":false})",
  };
  // What models say that call the tool, family by family.
  const std::string_view calls[] = {
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"x\": "
      "1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"x\": 1}}]",
      "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {\"x\": "
      "1}}]<|END_ACTION|>",
      "Action: ```json\n[\n{\"tool_name\": \"f\", \"parameters\": {\"x\": 1}}\n]\n```",
      "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"x\": 1}}]",
      "a <tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": [1, "
      "\"}\"]}}\n</tool_call>\n<tool_call>{}</tool_call>",
      "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"x\": 1}}; {\"name\": \"g\"}",
      "{\"name\": \"f\", \"arguments\": {\"x\": 1}}",
  };
  const auto write_call = [&](int family, int api, std::string_view said) {
    std::string seed(1, static_cast<char>(5 * family + api));
    seed += R"({"messages":[{"role":"user","content":"a"}],)" + std::string(kTools);
    seed += api == 0 ? R"(,"stream":true,"logprobs":true})" : "}";
    coppice::core::write_seed(arguments[1], "call" + std::to_string(family) + "-" + std::to_string(api),
                              std::string_view(seed.append(1, '\0').append(said)));
  };
  for (int family = 0; family < static_cast<int>(std::size(calls)); ++family)
    for (const int api : {0, 2}) write_call(family, api, calls[family]);
  int number = 0;
  for (const std::string& seed : seeds)
    coppice::core::write_seed(arguments[1], std::to_string(number++), std::string_view(seed));
}
