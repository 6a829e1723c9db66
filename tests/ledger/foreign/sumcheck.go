// What Go's own transparency log code says of deskcert's files. Each command exits 0 only if that code accepts.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) []byte {
	data, err := os.ReadFile(path)
	check(err)
	return data
}

func open(message []byte, vkeys ...string) *note.Note {
	var verifiers []note.Verifier
	for _, vkey := range vkeys {
		verifier, err := note.NewVerifier(vkey)
		check(err)
		verifiers = append(verifiers, verifier)
	}
	opened, err := note.Open(message, note.VerifierList(verifiers...))
	check(err)
	return opened
}

type hashes []tlog.Hash

func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var found []tlog.Hash
	for _, index := range indexes {
		found = append(found, h[index])
	}
	return found, nil
}

// tree writes every stored hash and returns size and root of the lines of a ledger.
func tree(path string) (int64, tlog.Hash, hashes) {
	var stored hashes
	size := int64(0)
	for _, line := range bytes.Split(bytes.TrimSuffix(read(path), []byte("\n")), []byte("\n")) {
		added, err := tlog.StoredHashes(size, line, stored)
		check(err)
		stored = append(stored, added...)
		size++
	}
	root, err := tlog.TreeHash(size, stored)
	check(err)
	return size, root, stored
}

func head(opened *note.Note) (int64, tlog.Hash) {
	lines := strings.Split(opened.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	root, err := tlog.ParseHash(lines[2])
	check(err)
	return size, root
}

func same(got, wanted tlog.Hash) {
	if got != wanted {
		check(fmt.Errorf("the root is %v and not %v", got, wanted))
	}
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	switch os.Args[1] {
	case "note": // FILE VKEY...
		out.WriteString(open(read(os.Args[2]), os.Args[3:]...).Text)
	case "tree": // LEDGER CHECKPOINT VKEY: root recomputed, stored hashes to standard output
		size, root := head(open(read(os.Args[3]), os.Args[4]))
		count, computed, stored := tree(os.Args[2])
		if count != size {
			check(fmt.Errorf("%d lines and not %d", count, size))
		}
		same(computed, root)
		for _, hash := range stored {
			out.Write(hash[:])
		}
	case "proof": // PROOF LINE VKEY
		parts := strings.SplitN(string(read(os.Args[2])), "\n\n", 2)
		lines := strings.Split(parts[0], "\n")
		if lines[0] != "c2sp.org/tlog-proof@v1" {
			check(fmt.Errorf("not a tlog-proof"))
		}
		lines = lines[1:]
		if strings.HasPrefix(lines[0], "extra ") {
			lines = lines[1:]
		}
		index, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "index "), 10, 64)
		check(err)
		var proof tlog.RecordProof
		for _, line := range lines[1:] {
			raw, err := base64.StdEncoding.DecodeString(line)
			check(err)
			var hash tlog.Hash
			copy(hash[:], raw)
			proof = append(proof, hash)
		}
		size, root := head(open([]byte(parts[1]), os.Args[4]))
		check(tlog.CheckRecord(proof, size, root, index, tlog.RecordHash(read(os.Args[3]))))
	case "consistent": // OLD NEW VKEY PROOF: base64 hashes, one a line
		oldSize, oldRoot := head(open(read(os.Args[2]), os.Args[4]))
		size, root := head(open(read(os.Args[3]), os.Args[4]))
		var proof tlog.TreeProof
		for _, line := range strings.Fields(string(read(os.Args[5]))) {
			hash, err := tlog.ParseHash(line)
			check(err)
			proof = append(proof, hash)
		}
		check(tlog.CheckTree(proof, size, root, oldSize, oldRoot))
	}
}
