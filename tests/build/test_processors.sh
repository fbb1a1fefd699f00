#!/bin/sh
# What depends on the processor, for processors that this machine may not have (tools/processors.sh says how).
# long
exec sh tools/processors.sh --fast
