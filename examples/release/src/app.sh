#!/bin/sh
# FIXME: greet in other languages
echo "hello"
