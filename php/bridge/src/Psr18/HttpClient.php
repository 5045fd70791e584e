<?php

/**
 * The control interface over the application's own HTTP client (PSR-18), instead of the library's
 * socket: for TLS through a proxy, for tracing, for a client that the framework configures.
 *
 *     Configuration::set(new Pagewell\Bridge\Psr18\HttpClient($http, $factory, $factory, 'http://127.0.0.1:8081'));
 *
 * **Set a timeout in that client**: PSR-18 has no deadline, and a request of a visitor may wait for the
 * call. It must not follow redirects, as PSR-18 requires. An exception of PSR-18 counts as
 * unreachable, and so does a RuntimeException, which its streams throw. Others are faults of the program, and pass.
 */

declare(strict_types=1);

namespace Pagewell\Bridge\Psr18;

use Pagewell\Core\ControlCalls;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Explanation;
use Pagewell\Core\ExplanationClient;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationResult;
use Pagewell\Core\SiteClient;
use Pagewell\Core\SocketClient;
use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;

/** The control interface by a PSR-18 client. */
final class HttpClient implements SiteClient, ExplanationClient
{
    private readonly ControlCalls $calls;

    /**
     * @param string      $address   `http://127.0.0.1:8081`, or the URL of a proxy with TLS in front of it
     * @param string|null $tokenFile read at each call
     * @param string|null $site      host of the site that calls are for; null means every site
     *
     * @throws InvalidConfiguration the address is no URL
     */
    public function __construct(
        private readonly ClientInterface $http,
        private readonly RequestFactoryInterface $requests,
        private readonly StreamFactoryInterface $streams,
        private readonly string $address = 'http://' . SocketClient::ADDRESS,
        private readonly ?string $tokenFile = null,
        private readonly ?string $site = null,
    ) {
        if (preg_match('~^https?://[^\s/?#]+(?:/[^\s?#]*)?$~D', $address) !== 1) {
            throw new InvalidConfiguration("'$address' is not the URL of a control interface: write http://127.0.0.1:8081.");
        }
        $this->calls = new ControlCalls($this->send(...), $site);
    }

    public function site(): ?string
    {
        return $this->site;
    }

    public function invalidate(Invalidation $invalidation): InvalidationResult
    {
        return $this->calls->invalidate($invalidation);
    }

    public function explain(string $url, array $fields = []): Explanation
    {
        return $this->calls->explain($url, $fields);
    }

    /** @return array{int, string} status and content */
    private function send(string $path, string $body): array
    {
        $token = ControlCalls::token($this->tokenFile);
        $request = $this->requests->createRequest('POST', rtrim($this->address, '/') . $path)
            ->withHeader('Content-Type', 'application/json')
            ->withBody($this->streams->createStream($body));
        try {
            $response = $this->http->sendRequest($token === null ? $request : $request->withHeader('Authorization', "Bearer $token"));
            return [$response->getStatusCode(), self::bounded($response->getBody())];
        } catch (ClientExceptionInterface | \RuntimeException $failure) {
            throw new PagewellUnreachable("Pagewell is not at {$this->address}: {$failure->getMessage()}", 0, $failure);
        }
    }

    private static function bounded(StreamInterface $stream): string
    {
        // A stream that was made from a text stands at its end.
        $stream->isSeekable() && $stream->rewind();
        $content = '';
        while (!$stream->eof() && strlen($content) < ControlCalls::ANSWER_BYTES_MAX) {
            $content .= $stream->read(65_536);
        }
        return $content;
    }
}
