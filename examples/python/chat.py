"""Chat in five lines: python chat.py MODEL.gguf "What is a glade?" """

import sys

import coppice

model = coppice.Model(sys.argv[1])
for piece in model.chat_stream(sys.argv[2], max_new_tokens=200):
    print(piece, end="", flush=True)
print()
