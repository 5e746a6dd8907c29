// LibTorch, as little of it as serves: its headers take seconds to compile, so few files include this one.
#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
