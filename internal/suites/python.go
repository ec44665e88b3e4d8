package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// python is Debian's, for which the drivers are packages of Debian's.
const python = "/usr/bin/python3"

// debian fetches a source package of a release of Debian's. Where the modules are missing that the tests import, it says so.
func debian(release, name string, modules ...string) func(context.Context, string) error {
	return func(ctx context.Context, folder string) error {
		if err := hasModules(ctx, folder, modules); err != nil {
			return err
		}
		return once(folder, "source", func(to string) error {
			if err := apt(ctx, folder, release, "source", "--download-only", name); err != nil {
				return err
			}
			return unpack(ctx, folder, "*.orig.tar.*", "tar", "--strip-components=1", "-C", to, "-xf")
		})
	}
}

// apt runs apt-get with lists and a cache of its own, so that nothing on the machine changes but the folder. A mirror may lack files of a
// source package that nobody needs here, so only what is there afterwards counts.
func apt(ctx context.Context, folder, release string, args ...string) error {
	sources := "Types: deb deb-src\nURIs: http://deb.debian.org/debian\nSuites: " + release + "\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
	if err := os.WriteFile(filepath.Join(folder, "debian.sources"), []byte(sources), 0o644); err != nil {
		return err
	}
	for _, dir := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			return err
		}
	}
	own := []string{"-qq", "-o", "APT::Sandbox::User=root", "-o", "Dir::Etc::sourcelist=" + filepath.Join(folder, "debian.sources"), "-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::State::lists=" + filepath.Join(folder, "lists"), "-o", "Dir::Cache=" + filepath.Join(folder, "cache")}
	if _, err := fetch(ctx, folder, "apt-get", append(own, "update")...); err != nil {
		return err
	}
	_, _ = fetch(ctx, folder, "apt-get", append(own, args...)...)
	return ctx.Err()
}

// unpack runs a program for each file of a pattern that is no signature.
func unpack(ctx context.Context, folder, pattern, name string, args ...string) error {
	files, _ := filepath.Glob(filepath.Join(folder, pattern))
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Ext(f) == ".asc" })
	if len(files) == 0 {
		return fmt.Errorf("the mirror has no %s", pattern)
	}
	for _, f := range files {
		if _, err := fetch(ctx, folder, name, append(args, f)...); err != nil {
			return err
		}
	}
	return nil
}

// once fills a folder, unless an earlier run did.
func once(folder, name string, fill func(to string) error) error {
	source, partial := filepath.Join(folder, name), filepath.Join(folder, "partial")
	if _, err := os.Stat(source); err == nil {
		return nil
	}
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	if err := fill(partial); err != nil {
		return err
	}
	return os.Rename(partial, source)
}

// packages unpacks packages of a release of Debian's into a folder of that name.
func packages(ctx context.Context, folder, name, release string, list ...string) error {
	return once(folder, name, func(to string) error {
		if err := apt(ctx, folder, release, append([]string{"download"}, list...)...); err != nil {
			return err
		}
		for _, p := range list {
			if err := unpack(ctx, folder, p+"_*.deb", "sh", "-c", `dpkg-deb -x "$1" "$0"`, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// hasModules says what python lacks.
func hasModules(ctx context.Context, folder string, modules []string) error {
	_, err := fetch(ctx, folder, python, "-c", "import "+strings.Join(modules, "\nimport "))
	return err
}

// pytest makes a suite of a source that pytest runs.
func pytest(name, engine string, get func(context.Context, string) error, prepare []string, before func(folder string, at place) (env, args []string, err error)) suite {
	return suite{
		name: name, engine: engine,
		get: func(ctx context.Context, folder string) error {
			if err := get(ctx, folder); err != nil {
				return err
			}
			if err := packages(ctx, folder, "pytest", "bookworm", "python3-pytest", "python3-pluggy", "python3-iniconfig", "python3-packaging", "python3-attr", "python3-pytest-timeout"); err != nil {
				return err
			}
			return hasModules(ctx, filepath.Join(folder, "pytest"), []string{"sys; sys.path.insert(0, 'usr/lib/python3/dist-packages')", "pytest, pytest_timeout"})
		},
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			if err := at.prepare(ctx, prepare...); err != nil {
				return nil, err
			}
			env, args, err := before(filepath.Join(folder, "source"), at)
			if err != nil {
				return nil, err
			}
			report := filepath.Join(folder, "report.xml")
			if err := os.RemoveAll(report); err != nil {
				return nil, err
			}
			args = append([]string{"-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=60", "--junitxml=" + report}, args...)
			if only != nil {
				args = append(args, "-k", pytestPattern(only))
			}
			out, err := at.command(ctx, filepath.Join(folder, "source"), append(env, "PYTHONPATH="+filepath.Join(folder, "pytest", "usr/lib/python3/dist-packages")), python, args...)
			if err != nil {
				return nil, err
			}
			written, err := os.ReadFile(report)
			if err != nil {
				return nil, fmt.Errorf("no test ran: %s", tail(out))
			}
			return junitOutcomes(written)
		},
	}
}

// pytestPattern matches the functions of some tests.
func pytestPattern(tests []string) string {
	var names []string
	for _, t := range tests {
		name := t[strings.LastIndexByte(t, ' ')+1:]
		name, _, _ = strings.Cut(name, "[")
		names = append(names, name)
	}
	return strings.Join(names, " or ")
}

// junitOutcomes reads a report in the form of JUnit.
func junitOutcomes(report []byte) (outcomes, error) {
	var doc struct {
		Suites []struct {
			Cases []struct {
				Class   string    `xml:"classname,attr"`
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(report, &doc); err != nil {
		return nil, err
	}
	r := outcomes{}
	for _, s := range doc.Suites {
		for _, c := range s.Cases {
			outcome := passed
			switch {
			case c.Failure != nil || c.Error != nil:
				outcome = failed
			case c.Skipped != nil:
				outcome = skipped
			}
			r[c.Class+" "+c.Name] = outcome
		}
	}
	return r, nil
}

// django is the part of Django's own tests that goes to the database most.
func django(name, engine, backend string, labels ...string) suite {
	const settings = "wirecheck_settings"
	modules := map[string]string{"postgresql": "psycopg2", "mysql": "MySQLdb"}
	return suite{
		name: name, engine: engine, get: debian("bookworm", "python-django", modules[backend], "pytz", "sqlparse", "asgiref"),
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			source := filepath.Join(folder, "source")
			database := fmt.Sprintf("{'ENGINE': 'django.db.backends.%s', 'USER': %q, 'PASSWORD': %q, 'HOST': %q, 'PORT': '%d'", backend, at.user, at.password, at.host, at.port)
			text := fmt.Sprintf("DATABASES = {'default': %s, 'NAME': 'django'}, 'other': %s, 'NAME': 'django2'}}\nSECRET_KEY = 'x'\nUSE_TZ = False\nDEFAULT_AUTO_FIELD = 'django.db.models.AutoField'\nPASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']\n", database, database)
			if err := os.WriteFile(filepath.Join(source, "tests", settings+".py"), []byte(text), 0o644); err != nil {
				return nil, err
			}
			if err := at.prepare(ctx, "CREATE DATABASE django", "CREATE DATABASE django2"); err != nil {
				return nil, err
			}
			args := append([]string{"runtests.py", "--settings", settings, "--parallel=1", "--noinput", "-v2"}, labels...)
			for _, t := range only {
				if _, name, ok := strings.Cut(t, " "); ok {
					args = append(args, "-k", name)
				}
			}
			out, err := at.command(ctx, filepath.Join(source, "tests"), []string{"PYTHONPATH=" + source, "PYTHONWARNINGS=ignore"}, python, args...)
			if err != nil {
				return nil, err
			}
			return unittestOutcomes(out)
		},
	}
}

// unittestOutcomes reads what unittest prints when it is talkative: "name (class) ... ok", where a line of a description may stand in front of the dots.
func unittestOutcomes(out []byte) (outcomes, error) {
	r, test := outcomes{}, ""
	for line := range bytes.Lines(out) {
		head, rest, dots := strings.Cut(strings.TrimSpace(string(line)), " ... ")
		if name, class, ok := strings.Cut(head, " ("); ok && strings.HasPrefix(name, "test") && !strings.Contains(name, " ") {
			class, _, _ = strings.Cut(class, ")")
			test = class + " " + name
		}
		if !dots || test == "" {
			continue
		}
		for word, outcome := range map[string]string{"ok": passed, "expected failure": passed, "FAIL": failed, "ERROR": failed, "unexpected success": failed, "skipped": skipped} {
			if strings.HasPrefix(rest, word) {
				r[test] = outcome
			}
		}
		test = ""
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("no test ran: %s", tail(out))
	}
	return r, nil
}

// tail is the end of an output.
func tail(out []byte) string {
	return strings.TrimSpace(string(out[max(0, len(out)-400):]))
}

// dialectSuite makes a source of the tests that Debian's package of SQLAlchemy has for every dialect.
func dialectSuite(driver string) func(context.Context, string) error {
	return func(ctx context.Context, folder string) error {
		if err := hasModules(ctx, folder, []string{"sqlalchemy", driver}); err != nil {
			return err
		}
		return once(folder, "source", func(to string) error {
			for name, text := range map[string]string{
				"conftest.py":   "import pytest\npytest.register_assert_rewrite('sqlalchemy.testing.assertions')\nfrom sqlalchemy.testing.plugin.pytestplugin import *\n",
				"test_suite.py": "from sqlalchemy.testing.suite import *\n",
				"setup.cfg":     "[sqla_testing]\nrequirement_cls=sqlalchemy.testing.requirements:SuiteRequirements\nprofile_file=profiles.txt\n",
			} {
				if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
