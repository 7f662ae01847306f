package mcptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync"
	"time"
)

// TLS makes the server speak https, and HTTP/2 to clients that offer it. Its
// certificate is for 127.0.0.1 and localhost, and of an authority that only
// [RootCAs] knows.
func TLS() Option { return func(s *settings) { s.tls = true } }

// RootCAs is the authority of every server with [TLS] in this process.
func RootCAs() *x509.CertPool { return certify().roots }

// certified is a certificate and those who believe it.
type certified struct {
	certificate tls.Certificate
	roots       *x509.CertPool
}

// certify makes the one certificate of this process, which is its own authority.
var certify = sync.OnceValue(func() certified {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system has no randomness
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mcptest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err) // the template cannot be used
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return certified{tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, roots}
})

// secure is how a server with [TLS] is set up.
func secure() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{certify().certificate},
		MinVersion:   tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}
}
