// Everything: #include <coppice/coppice.h>
#pragma once

#include <coppice/bench.h>
#include <coppice/corpus.h>
#include <coppice/decision.h>
#include <coppice/drafter.h>
#include <coppice/engine.h>
#include <coppice/error.h>
#include <coppice/grammar.h>
#include <coppice/model.h>
#include <coppice/quantize.h>
#include <coppice/request.h>
#include <coppice/sampling.h>
#include <coppice/speculation.h>
#include <coppice/stats.h>
#include <coppice/token.h>
#include <coppice/token_texts.h>
#include <coppice/tool_calls.h>
#include <coppice/tools.h>
