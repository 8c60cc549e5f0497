"""Becomes the program, which lies in bin/ beside this file."""
import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bin", "cloze")
    os.execv(program, ["cloze", *sys.argv[1:]])


if __name__ == "__main__":
    main()
