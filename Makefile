# `make book` and `make test` are all one needs. What they do is described in book/workflow/Snakefile.
# Without make: book/workflow/setup.sh once (on Windows the three lines in README.md), then `python -m bookkit book`.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: book page test serve pdf reproduce baselines verify links lock prove clean help setup
ARGS ?=

book test serve pdf reproduce baselines verify links lock: setup
	@.venv/bin/python -m bookkit $@ $(ARGS)

page: setup
	@.venv/bin/python -m bookkit page $(CHAPTER) $(ARGS)

book:       ## run the notebooks that changed, build the site into book/_build/html, check it
page:       ## run one chapter and show it by itself, minutes after cloning (CHAPTER=11; ARGS=--no-browser only prints its address)
test:       ## build the book, then run every test against it (ARGS="-k fourier" chooses tests)
serve:      ## show the built book in a browser (ARGS=--no-browser only prints its address)
pdf:        ## print the built book into book/_build/arithmetic-book.pdf; needs Chromium or Chrome, and minutes
reproduce:  ## retrain everything this machine can, then build the book from that: hours without a GPU
baselines:  ## take the figures as they are now as the baselines of the figure tests

setup:
	@bash book/workflow/setup.sh

verify:     ## hold the built site (ARGS=FOLDER: any copy of it) against what this checkout holds
links:      ## ask every outside address in the book whether it is there (needs a network)
lock:       ## write requirements.lock anew (ARGS=--update: raise the pins of requirements.txt first); needs uv
prove:      ## have Coq check the proofs in proofs/ (chapters 72, 78 and 79); installs nothing
	@python3 proofs/check.py $(ARGS)
clean:      ## remove what was built; what was installed or trained stays
	@rm -rf book/_build .snakemake

help:       ## list these commands
	@sed -n 's/^\([a-z]*\): *## \(.*\)/make \1\t\2/p' Makefile | expand -t 17
