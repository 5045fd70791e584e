<?php

/**
 * The sub-requests of a page: `render(controller(…))`, forward(), the controller of an error page. They belong to it.
 *
 *     a part has                             the page
 *     #[NotCached], #[FreshFor(0)]           is not cached
 *     #[Uses], #[FreshFor], #[Tag]           has them as well, if it declares something itself, or if the response of
 *                                            the part is its own (forward())
 *     a response with private or no-store    is not cached
 *     thrown an exception                    is not cached, because something is missing on it
 *
 * A part alone does not offer a page: a menu in every layout says nothing about the rest of the page. What it
 * declares waits until the page is finished.
 *
 * A fragment that ESI or hinclude inserts is a main request, and a page of its own.
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\Bridge\HttpFoundation\ResponseLines;
use Pagewell\Core\Refusal;
use Pagewell\RequestScope;
use Symfony\Component\HttpFoundation\Response;

/**
 * Collects the declarations of the sub-requests of one page.
 *
 * @internal
 */
final class PageParts
{
    /** @var list<ControllerAttributes> */
    private array $waiting = [];

    /** @var list<\WeakReference<Response>> of parts that offer what they render */
    private array $offered = [];

    /** @var list<\WeakReference<Response>> that must not be shared */
    private array $private = [];

    private bool $isBroken = false;

    /** Adds the attributes of a part, before its controller is called. */
    public function add(ControllerAttributes $part): void
    {
        $this->waiting[] = $part;
    }

    /** Adds the response of a part. */
    public function answered(?ControllerAttributes $part, Response $response): void
    {
        if ($part?->isOffer()) {
            $this->offered[] = \WeakReference::create($response);
        }
        if (ResponseLines::forbidsStoring($response)) {
            $this->private[] = \WeakReference::create($response);
        }
    }

    /** Adds that a part has failed. */
    public function broke(): void
    {
        $this->isBroken = true;
    }

    /**
     * Declares the parts for their page.
     *
     * @param bool $isError whether the page is the answer to an exception: its controller declares nothing for the address
     */
    public function declare(RequestScope $scope, Response $page, bool $isError): void
    {
        $isPage = static fn (\WeakReference $one): bool => $one->get() === $page;
        $isOwn = $scope->refusal() !== Refusal::Nothing || (!$isError && array_filter($this->offered, $isPage) !== []);
        $isNotCached = $this->isBroken || count(array_filter($this->private, $isPage)) !== count($this->private);
        foreach ($this->waiting as $part) {
            $isOwn && $part->declare($scope);
            $isNotCached = $isNotCached || $part->isNotCached;
        }
        $isNotCached && $scope->notCached();
        $this->waiting = [];
    }
}
